package face

import (
	"context"
	"sync"
)

// accepted counts the requests a face has taken in, so that closing can refuse
// new ones and wait for those.
type accepted struct {
	mu      sync.Mutex
	count   int
	refused bool
	// idle is made when somebody waits, and closed when count falls to zero.
	idle chan struct{}
}

// begin takes a request in, or reports that no more are taken.
func (a *accepted) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refused {
		return false
	}
	a.count++
	return true
}

func (a *accepted) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count--
	if a.count == 0 && a.idle != nil {
		close(a.idle)
		a.idle = nil
	}
}

// stop refuses every further request.
func (a *accepted) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused = true
}

// wait returns when stop was called and all that began has ended, or with the
// context's error.
func (a *accepted) wait(ctx context.Context) error {
	a.mu.Lock()
	if a.count == 0 {
		a.mu.Unlock()
		return nil
	}
	if a.idle == nil {
		a.idle = make(chan struct{})
	}
	idle := a.idle
	a.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inFlight is how many requests are being worked on or wait for their turn.
func (a *accepted) inFlight() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count
}
