package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// How long a renewal may take, and how long an old connection may finish what was
// accepted on it; a quarter of the lifetime bounds both also.
const (
	longestRenewal    = 10 * time.Second
	longestRetirement = 30 * time.Second
)

// proveWithin bounds the proof of one new connection, so that its context has an end
// whatever the owner's has.
const proveWithin = 15 * time.Second

// Use says what an owner does when a standing connection changes. Either may be
// nil.
type Use struct {
	// Prove is called on every new connection before it becomes the current one, the
	// first included: subscribe, ask something, make sure it works. Its context ends
	// after 15 s at the latest. An error means
	// that the connection is closed and the dial or renewal has failed.
	Prove func(ctx context.Context, next *Conn) error
	// Retire is called on the old connection after the swap, when nobody uses it
	// through With any more: finish what was accepted on it, answers flushed. The
	// connection is closed when it returns, at the latest when ctx ends.
	Retire func(ctx context.Context, old *Conn)
}

// Standing keeps one role connected across renewals. Its owner calls Run in a
// goroutine of its own, and Close in the end.
type Standing struct {
	dialer *Dialer
	role   Role
	keep   Keep
	use    Use
	life   time.Duration

	mu      sync.Mutex
	current *Conn
	stopped bool
	// stop ends Run, and running is closed when it has returned (capacity 0: it
	// carries no value). Both are nil before Run was called.
	stop    context.CancelFunc
	running chan struct{}
}

// Stand dials and proves the first connection of a standing role.
func (d *Dialer) Stand(ctx context.Context, role Role, keep Keep, use Use) (*Standing, error) {
	if role.life != standing {
		return nil, messages.InternalFault.Because("%s is not a standing role", role.name)
	}
	s := &Standing{dialer: d, role: role, keep: keep, use: use, life: d.cfg.StandingLifetime}
	first, err := s.open(ctx, 1)
	if err != nil {
		return nil, err
	}
	s.current = first
	return s, nil
}

// open dials and proves one connection.
func (s *Standing) open(ctx context.Context, generation uint64) (*Conn, error) {
	next, err := s.dialer.dial(ctx, s.role, s.keep, generation)
	if err != nil || s.use.Prove == nil {
		return next, err
	}
	proving, cancel := context.WithTimeout(ctx, proveWithin)
	defer cancel()
	if err := s.use.Prove(proving, next); err != nil {
		next.Sever()
		<-next.Ended()
		return nil, fmt.Errorf("prove %s: %w", next.Label(), away(err))
	}
	return next, nil
}

// Current is the connection in use now. A renewal may retire it at any moment, so
// whatever must not meet its end goes through With.
func (s *Standing) Current() *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// With calls do with the current connection, which a renewal will not close before
// do has returned. So do takes seconds at most: a quarter of the lifetime, or 30 s.
// After Close it refuses with messages.ServiceClosing.
func (s *Standing) With(do func(*Conn) error) error {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return messages.ServiceClosing
	}
	c := s.current
	c.pins.add() // under the lock: nobody pins a connection that is no longer current
	s.mu.Unlock()
	defer c.pins.done()
	return do(c)
}

// Run renews the connection at half of its JWT's lifetime until ctx ends or Close
// is called, and then returns nil. It returns an error as soon as the connection
// is lost or a renewal fails: that is the failure of the role's actor. It may be
// called once.
func (s *Standing) Run(ctx context.Context) error {
	ctx, finish, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer finish()
	var retirement sync.WaitGroup
	defer retirement.Wait()
	for {
		current := s.Current()
		if due, err := s.awaitRenewal(ctx, current); !due {
			return err
		}
		next, err := s.renew(ctx, current)
		if next == nil {
			return err
		}
		s.swap(next)
		retirement.Wait()
		retirement.Go(func() { s.retire(ctx, current) })
	}
}

// start registers the one run there may be.
func (s *Standing) start(ctx context.Context) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return nil, nil, messages.InternalFault.Because("%s already ran", s.role.name)
	}
	ctx, s.stop = context.WithCancel(ctx)
	if s.stopped {
		s.stop()
	}
	running := make(chan struct{})
	s.running = running
	return ctx, func() { s.stop(); close(running) }, nil
}

// awaitRenewal reports whether a renewal is due; otherwise the run is over, with
// an error if the connection was lost.
func (s *Standing) awaitRenewal(ctx context.Context, current *Conn) (due bool, err error) {
	renewal := time.NewTimer(s.life / 2)
	defer renewal.Stop()
	select {
	case <-ctx.Done():
		return false, nil
	case <-current.Lost():
		return false, current.Err()
	case <-renewal.C:
		return true, nil
	}
}

// renew opens the next connection while the current one still serves. Neither a
// connection nor an error means that the run ended meanwhile.
func (s *Standing) renew(ctx context.Context, current *Conn) (*Conn, error) {
	limited, cancel := context.WithTimeout(ctx, min(longestRenewal, s.life/4))
	defer cancel()
	next, err := s.open(limited, current.Generation()+1)
	switch {
	case err == nil:
		return next, nil
	case ctx.Err() != nil:
		return nil, nil
	default:
		return nil, fmt.Errorf("renew %s: %w", current.Label(), err)
	}
}

func (s *Standing) swap(next *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = next
}

// retire lets go of an old connection: first those that use it finish, then the
// owner what it accepted, then it is closed, by force if it must be.
func (s *Standing) retire(ctx context.Context, old *Conn) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(longestRetirement, s.life/4))
	defer cancel()
	old.pins.wait(limited)
	if s.use.Retire != nil {
		s.use.Retire(limited, old)
	}
	if err := old.Close(limited); err != nil {
		s.dialer.cfg.Logger.Warn("an old connection did not close cleanly", "connection", old.Label(), "error", err)
		old.Sever()
		<-old.Ended()
	}
}

// Close ends Run, waits for it and, for up to 2 s, for those that are inside With,
// and closes the current connection.
func (s *Standing) Close(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	running := s.running
	if s.stop != nil {
		s.stop()
	}
	s.mu.Unlock()
	var unfinished error
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
			unfinished = fmt.Errorf("close %s: its renewal has not ended: %w", s.Current().Label(), ctx.Err())
		}
	}
	current := s.Current()
	inUse, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	current.pins.wait(inUse)
	return errors.Join(unfinished, current.Close(ctx))
}
