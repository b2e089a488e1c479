package face

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// Limits of what a face works on.
const (
	// MaxWorking is how many requests are worked on at once.
	MaxWorking = 64
	// MaxWaiting is how many more may wait for their turn. A waiting request may
	// hold a body, so this bounds the memory that strangers can make us hold.
	MaxWaiting = 2048
	// MaxWait is how long one waits before it is told that we are busy.
	MaxWait = 10 * time.Second
	// MaxRegistering is how many registrations are worked on at once, beside the others:
	// each waits for connections to end.
	MaxRegistering = 16
	// MaxStreams is how many event streams are open at once.
	MaxStreams = 32
	// MaxFences is how many wait for the fence of a process at once. They take no turn;
	// each has a connection, of which there must be some left.
	MaxFences = 1024
)

// turns lets a few requests work while others wait. Both channels are counting
// semaphores; their capacities are the limits above.
type turns struct {
	working  chan struct{}
	waiting  chan struct{}
	patience time.Duration
}

func newTurns(working, waiting int, patience time.Duration) *turns {
	return &turns{working: make(chan struct{}, working), waiting: make(chan struct{}, waiting), patience: patience}
}

// take waits for a turn. The caller gives it back with the function returned.
func (t *turns) take(ctx context.Context) (func(), error) {
	select {
	case t.working <- struct{}{}:
		return t.giveBack, nil
	default:
	}
	select {
	case t.waiting <- struct{}{}:
		defer func() { <-t.waiting }()
	default:
		return nil, messages.Busy
	}
	patience := time.NewTimer(t.patience)
	defer patience.Stop()
	select {
	case t.working <- struct{}{}:
		return t.giveBack, nil
	case <-patience.C:
		return nil, messages.Busy
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (t *turns) giveBack() { <-t.working }
