package footprint

import (
	"context"
	"sync"

	"github.com/cotal-ai/authplane/messages"
)

// turns lets those of this process who are about one principal go one after another.
// It saves them from each other's way; between processes the pins decide. The zero value
// is ready.
type turns struct {
	mu    sync.Mutex
	taken map[messages.Principal]chan struct{} // closed when the turn ends
}

// try takes the turn if nobody has it.
func (t *turns) try(p messages.Principal) (leave func(), free bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, busy := t.taken[p]; busy {
		return nil, false
	}
	if t.taken == nil {
		t.taken = map[messages.Principal]chan struct{}{}
	}
	over := make(chan struct{})
	t.taken[p] = over
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.taken, p)
		close(over)
	}, true
}

// enter waits for the turn.
func (t *turns) enter(ctx context.Context, p messages.Principal) (leave func(), err error) {
	for {
		if leave, free := t.try(p); free {
			return leave, nil
		}
		t.mu.Lock()
		over, busy := t.taken[p]
		t.mu.Unlock()
		if !busy {
			continue
		}
		select {
		case <-over:
		case <-ctx.Done():
			return nil, messages.Contended.From(context.Cause(ctx))
		}
	}
}
