package client

import (
	"context"
	"sync/atomic"

	"github.com/cotal-ai/authplane/supervisor"
)

const (
	// maxHands is how many requests one client works on at once; one more is answered
	// with Busy. A storm of first exchanges stays below it.
	maxHands = 4096
	// idleHands is how many stay when there is nothing to do, so that a steady load is
	// worked on by goroutines whose stacks have grown to what it takes.
	idleHands = 64
)

// hands are the tasks of one life that work on its requests, each on one at a time.
type hands struct {
	life *supervisor.Life
	todo chan func(context.Context) // unbuffered: only who is idle takes from it
	all  atomic.Int64               // hands that there are
	idle atomic.Int64               // and those of them that wait
}

func newHands(life *supervisor.Life) *hands {
	return &hands{life: life, todo: make(chan func(context.Context))}
}

// give has an idle hand do the work, or one more hand. It reports false if there are
// too many. It is called by one goroutine, and never waits.
func (h *hands) give(work func(context.Context)) bool {
	select {
	case h.todo <- work:
		return true
	default:
	}
	if h.all.Load() >= maxHands {
		return false
	}
	h.all.Add(1)
	h.life.Go("serve", func(ctx context.Context) {
		defer h.all.Add(-1)
		for work != nil {
			work(ctx)
			work = h.next(ctx)
		}
	})
	return true
}

// next waits for more to do; nil means that the hand is not needed any more.
func (h *hands) next(ctx context.Context) func(context.Context) {
	defer h.idle.Add(-1)
	if h.idle.Add(1) > idleHands {
		return nil
	}
	select {
	case work := <-h.todo:
		return work
	case <-ctx.Done():
		return nil
	}
}
