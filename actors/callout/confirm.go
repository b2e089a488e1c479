package callout

import (
	"context"
	"sync"
)

// confirmer tells when the server has worked off what was sent on one connection.
// The server does so for one answer after another, and slower than we decide: who
// goes on without waiting moves the queue into the broker, where what is late is
// not seen and the oldest goes first.
//
// One flush serves everybody who came before it began.
type confirmer struct {
	flush func(context.Context) error
	turn  chan struct{} // capacity 1: holds a token while a flush is under way

	mu   sync.Mutex
	next *wave // whoever comes before the next flush begins; nil for nobody
}

// wave is those who wait for one flush.
type wave struct {
	done chan struct{} // closed when err stands
	err  error
}

func newConfirmer(flush func(context.Context) error) *confirmer {
	return &confirmer{flush: flush, turn: make(chan struct{}, 1)}
}

// wait returns when the server has worked off everything that was sent before the
// call, or with why that is not known. The first of those who wait together flushes
// for all, and so its context ends the wait of all.
func (c *confirmer) wait(ctx context.Context) error {
	w := c.join()
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case c.turn <- struct{}{}:
	}
	defer func() { <-c.turn }()
	if c.begin(w) {
		w.err = c.flush(ctx)
		close(w.done)
	}
	<-w.done
	return w.err
}

func (c *confirmer) join() *wave {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = &wave{done: make(chan struct{})}
	}
	return c.next
}

// begin lets nobody join w any more. It reports false if w has begun already, which
// then is over too, since the caller has the turn.
func (c *confirmer) begin(w *wave) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != w {
		return false
	}
	c.next = nil
	return true
}
