package ledger

import (
	"context"
	"sync"

	"github.com/cotal-ai/authplane/messages"
)

// queues lets callers about one principal go one after another within this process.
// It spares the stream the batches of a crowd of which one can win; what keeps the
// ledger right, here and between processes, are the pins.
type queues struct {
	mu    sync.Mutex
	lines map[messages.Principal]*queue
}

type queue struct {
	turn   chan struct{} // a token: whoever holds it is served
	people int           // who holds it or waits
}

// enter waits for the caller's turn. leave ends it; it is nil if ctx ended first.
func (q *queues) enter(ctx context.Context, p messages.Principal) (leave func(), err error) {
	q.mu.Lock()
	if q.lines == nil {
		q.lines = map[messages.Principal]*queue{}
	}
	l, found := q.lines[p]
	if !found {
		l = &queue{turn: make(chan struct{}, 1)} // one token
		l.turn <- struct{}{}
		q.lines[p] = l
	}
	l.people++
	q.mu.Unlock()
	select {
	case <-l.turn:
		return func() { l.turn <- struct{}{}; q.forget(p, l) }, nil
	case <-ctx.Done():
		q.forget(p, l)
		return nil, messages.Contended.From(ctx.Err())
	}
}

func (q *queues) forget(p messages.Principal, l *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.people--; l.people == 0 {
		delete(q.lines, p)
	}
}
