package evict

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// joinWithin is how much longer a run may take because others join it: whoever would keep
// it for longer is left to the next one, so that nobody waits for a stream of others.
const joinWithin = 5 * time.Second

// maxEarly bounds the sweeps that only drop who is there, before one that may prove
// something: one for whom it began with, and one for who joined.
const maxEarly = 2

// Joiner is somebody who comes while a run waits, and asks for the same proof.
type Joiner struct {
	Target messages.Target
	// Frozen is as in Ask; zero is the time at which he joins.
	Frozen time.Time
	// Refuse tells him why he is not taken in, in place of the run's outcome.
	Refuse func(error)
}

// Company is whoever may join a run. It is asked on the goroutine of Run.
type Company interface {
	// Gathered is closed once nobody is known to be coming; it may be closed already.
	Gathered() <-chan struct{}
	// Join takes those who have come since it was asked last and were frozen by then, in
	// the order in which they came. The run answers for them from now on.
	Join(by time.Time) []Joiner
}

// await waits until no server lets anybody in any more on a decision from before the
// freeze, of whoever joins meanwhile too. Whoever is connected is dropped at once, which
// proves nothing yet; of who joins when the others are there already the sweeps to come
// find it.
func (r *run) await(ctx context.Context, roster messages.Roster) error {
	alone, early := true, 0
	for {
		until := r.lateUntil(roster)
		if time.Until(until) > 0 {
			if early < maxEarly && (alone || r.gathered()) {
				early++
				if _, err := r.sweep(ctx); err != nil {
					return err
				}
			}
			if err := r.late(ctx, roster, until); err != nil {
				return err
			}
		}
		if alone && r.openUntil.IsZero() {
			r.openUntil = time.Now().Add(joinWithin)
		}
		alone = false
		if err := r.gather(ctx); err != nil {
			return err
		}
		if r.join(r.openUntil.Add(-r.patience(roster))) == 0 {
			return nil
		}
	}
}

// gathered reports whether nobody is known to be coming.
func (r *run) gathered() bool {
	select {
	case <-r.ports.Company.Gathered():
		return true
	default:
		return false
	}
}

// gather waits for those who are known to be coming, while anybody may join.
func (r *run) gather(ctx context.Context) error {
	within := time.Until(r.openUntil)
	if r.ports.Company == nil || within <= 0 {
		return nil
	}
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-r.ports.Company.Gathered():
		return nil
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// join takes in whoever has come and was frozen by then, and counts them. The newest
// freeze is waited for.
func (r *run) join(by time.Time) (joined int) {
	if r.ports.Company == nil {
		return 0
	}
	now := time.Now()
	for _, j := range r.ports.Company.Join(by) {
		if err := CheckTarget(j.Target); err != nil {
			j.Refuse(err)
			continue
		}
		if j.Frozen.IsZero() || j.Frozen.After(now) {
			j.Frozen = now
		}
		if j.Frozen.After(r.ask.Frozen) {
			r.ask.Frozen = j.Frozen
		}
		r.ask.Targets = append(r.ask.Targets, j.Target)
		joined++
	}
	return joined
}
