package operations

import (
	"context"
	"slices"
	"sync"
)

// order is who came before whom. The zero value is empty.
type order struct {
	mu     sync.Mutex
	inside []*place // in the order in which they came
}

// place is one call's.
type place struct {
	of   *order
	left chan struct{} // closed when the call has ended
}

func (o *order) enter() *place {
	p := &place{of: o, left: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inside = append(o.inside, p)
	return p
}

// leave may be called again.
func (p *place) leave() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if i := slices.Index(p.of.inside, p); i >= 0 {
		p.of.inside = slices.Delete(p.of.inside, i, i+1)
		close(p.left)
	}
}

// awaitTurn returns when everybody who came before has left, or when ctx ends.
func (p *place) awaitTurn(ctx context.Context) {
	p.of.mu.Lock()
	before := slices.Clone(p.of.inside[:max(0, slices.Index(p.of.inside, p))])
	p.of.mu.Unlock()
	for _, other := range before {
		select {
		case <-other.left:
		case <-ctx.Done():
			return
		}
	}
}
