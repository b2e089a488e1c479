package supervisor

import "time"

// A Clock is the source of time for backoffs, limits and events. Deadlines that
// arrive in a context are the context's own.
type Clock interface {
	Now() time.Time
	// NewTimer returns a timer that fires once, d from now. A d of zero or less
	// fires at once.
	NewTimer(d time.Duration) Timer
}

// A Timer is what a Clock hands out.
type Timer interface {
	C() <-chan time.Time
	// Stop keeps the timer from firing. It may be called more than once.
	Stop() bool
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

type systemTimer struct{ t *time.Timer }

func (t systemTimer) C() <-chan time.Time { return t.t.C }
func (t systemTimer) Stop() bool          { return t.t.Stop() }
