package supervisor

import (
	"context"
	"fmt"
)

// died is called when a life of k is over, by k's leaf or by the group below. It
// counts only for the life that was known to be open, so that nothing is dealt with
// twice. It needs the lock.
func (g *group) died(k *seat, generation uint64, cause error) {
	if k.up == 0 || k.up != generation {
		return
	}
	k.up = 0
	if cause != nil {
		g.tree.emit(Died{Origin: g.tree.origin(k.path, generation), Cause: cause})
	}
	if k.taken || g.phase == groupClosing || g.phase == groupFailing {
		k.fate(StateClosed, cause) // who closes it reports it
		return
	}
	k.body.dealt(generation)
	switch {
	case k.spec.Restart == Never:
		k.finished = true
		k.fate(StateClosed, cause)
		if k.added {
			g.removeWhenGone(k)
		}
	case !g.countDeath(k, cause):
	case k.spec.Restart == Rest:
		g.requestRest(k, cause)
	case k.spec.Restart == Fence:
		g.beginFence(k.path, cause, k.notBefore)
	default:
		g.revive(k)
	}
}

// countDeath records a death or a failed open of k and sets when it may be tried
// again. False: there will be no next time. It needs the lock.
func (g *group) countDeath(k *seat, cause error) bool {
	now := g.tree.set.clock.Now()
	counts := !isOutage(cause)
	delay, exhausted := k.record.death(now, g.tree.set.restart, g.tree.set.random, counts)
	switch {
	case k.spec.Restart == Escalate:
		k.fate(StateFailed, cause)
		g.fail(cause)
		return false
	case k.spec.Restart == Never:
		k.finished = true
		k.fate(StateClosed, cause)
		return false
	case exhausted:
		k.fate(StateFailed, cause)
		k.finished = true
		g.fail(k.failure(PhaseRun, fmt.Errorf("%w: %w", ErrExhausted, cause)))
		return false
	}
	k.notBefore = now.Add(delay)
	k.fate(StateRestarting, cause)
	k.mu.Lock()
	k.restarts++
	n := k.restarts
	k.mu.Unlock()
	g.tree.emit(Restarting{Origin: k.origin(), Cause: cause, In: delay, Count: n})
	return true
}

// revive restarts k alone, beside the lane. It needs the lock.
func (g *group) revive(k *seat) {
	ctx, cancel := context.WithCancelCause(context.Background())
	f := &flight{cancel: cancel, done: make(chan struct{})}
	k.op = f
	go func() { // who takes k waits for it
		defer close(f.done)
		defer cancel(nil)
		for g.tryRevive(ctx, k) {
		}
	}()
}

// tryRevive makes one attempt and reports whether there has to be another.
func (g *group) tryRevive(ctx context.Context, k *seat) (again bool) {
	generation, err := uint64(0), g.ready(ctx, k)
	if err == nil {
		generation, err = k.body.open(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		k.up = generation
		k.record.opened = k.openedAt()
		alive, why := k.body.alive(generation)
		if alive || ctx.Err() != nil {
			return g.endOp(k)
		}
		k.body.dealt(generation)
		k.up, err = 0, why
		g.tree.emit(Died{Origin: g.tree.origin(k.path, generation), Cause: err})
	}
	if ctx.Err() != nil || !g.countDeath(k, err) {
		return g.endOp(k)
	}
	return true
}

func (g *group) endOp(k *seat) bool {
	k.op = nil
	g.change()
	return false
}

// A request is what the lane has to undo before it opens again what is missing.
type request struct {
	pending bool
	rest    *seat // everything opened after it
	fence   bool
	cause   error
}

// requestRest asks the lane to unwind everything opened after k. It needs the lock.
func (g *group) requestRest(k *seat, cause error) {
	r := &g.request
	if r.rest == nil || g.index(k) < g.index(r.rest) {
		r.rest = k
	}
	if !r.pending {
		r.pending, r.cause = true, cause
	}
	g.poke()
}

func (g *group) index(k *seat) int {
	for i, other := range g.kids {
		if other == k {
			return i
		}
	}
	return len(g.kids)
}

// regroup ends what a request says, in reverse.
func (g *group) regroup(ctx context.Context, r request) {
	why := Regrouping
	if r.fence {
		why = Fencing
		g.endChildren(ctx, r.cause)
	}
	for _, k := range g.concerned(r) {
		if !g.seize(ctx, k) {
			return
		}
		if err := g.closeHard(ctx, k, why, r.cause); err != nil {
			g.tree.set.logger.Warn("a child did not close in order", "actor", k.path, "why", why.String(), "error", err)
		}
		g.release(k)
	}
	if r.fence {
		g.mu.Lock()
		if g.healing != nil {
			g.healing.ended = true
		}
		g.mu.Unlock()
	}
}

// concerned lists the children that a request closes, in the order of closing.
func (g *group) concerned(r request) []*seat {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []*seat
	for i := len(g.kids) - 1; i >= 0; i-- {
		k := g.kids[i]
		byRest := r.rest != nil && i > g.index(r.rest)
		if byRest || r.fence && contains(g.spec.Fence.Reopens, k.spec.Name) {
			out = append(out, k)
		}
	}
	return out
}

// seize takes k: its own restart is called off, and its death is no longer the
// group's to deal with. False: ctx ended first.
func (g *group) seize(ctx context.Context, k *seat) bool {
	g.mu.Lock()
	k.taken = true
	op := k.op
	op.stop(errRegroup)
	g.mu.Unlock()
	if op != nil {
		select {
		case <-op.done:
		case <-ctx.Done():
			g.release(k)
			return false
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	k.up = 0
	return true
}

// release gives k back to the lane.
func (g *group) release(k *seat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k.taken = false
	if !k.finished {
		k.fate(StateRestarting, nil)
	}
}
