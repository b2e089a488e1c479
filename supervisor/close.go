package supervisor

import (
	"context"
	"sync"
	"time"
)

// close ends the group: by its stages when the tree closes or the group is removed,
// and otherwise in the exact reverse of the open order, sparing nobody.
func (g *group) close(ctx context.Context, why Why, cause error) (bool, error) {
	done, err := g.beginClose(ctx)
	if done || err != nil {
		return done, err
	}
	if g.seat != nil {
		g.seat.set(StateClosing)
		g.tree.emit(Closing{Origin: g.seat.origin(), Why: why})
	}
	var errs []error
	if why == Shutdown || why == Removing {
		errs = g.cascade(ctx, why, cause)
	} else {
		errs = g.unwind(ctx, why, cause)
	}
	err = gather("close "+g.path, errs)
	g.mu.Lock()
	closed := len(g.leftovers()) == 0
	if closed {
		g.phase = groupClosed
	}
	g.mu.Unlock()
	if g.seat != nil && closed {
		g.seat.fate(StateClosed, err)
		g.tree.emit(Closed{Origin: g.seat.origin(), Err: err})
	}
	return closed, err
}

// beginClose ends the supervision of the group: from now on nothing is restarted.
// Done: it is closed already.
func (g *group) beginClose(ctx context.Context) (done bool, err error) {
	g.mu.Lock()
	if collapsing := g.collapsing; g.phase == groupFailing && collapsing != nil {
		g.mu.Unlock()
		if await(ctx, collapsing); ctx.Err() != nil {
			return false, g.seat.failure(PhaseClose, ErrStillRunning)
		}
		g.mu.Lock()
	}
	if g.phase == groupClosed {
		defer g.mu.Unlock()
		return len(g.leftovers()) == 0, nil
	}
	g.phase = groupClosing
	for _, k := range g.kids {
		k.taken = true
	}
	g.mu.Unlock()
	if !g.stopOps(ctx, ErrClosing) {
		return false, &Failure{Path: g.path, Phase: PhaseClose, Cause: ErrStillRunning}
	}
	return false, nil
}

// stopOps calls off the lane and every child's own restart, and waits for them. It
// reports whether that was in time.
func (g *group) stopOps(ctx context.Context, cause error) bool {
	g.mu.Lock()
	waits := make([]*flight, 0, len(g.kids)+1)
	if g.lane != nil {
		waits = append(waits, g.lane)
	}
	for _, k := range g.kids {
		if k.op != nil {
			waits = append(waits, k.op)
		}
	}
	for _, f := range waits {
		f.stop(cause)
	}
	g.mu.Unlock()
	for _, f := range waits {
		await(ctx, f.done)
	}
	return ctx.Err() == nil
}

// cascade closes stage by stage.
func (g *group) cascade(ctx context.Context, why Why, cause error) []error {
	var errs []error
	stages := g.stages()
	left := 0
	for _, s := range stages {
		left += s.share()
	}
	for _, s := range stages {
		stageCtx, cancel := divide(ctx, s.share(), left)
		failures, stuck := g.stage(stageCtx, s, why, cause)
		cancel()
		left -= s.share()
		errs = append(errs, failures...)
		if stuck && s.Halts {
			break
		}
	}
	return errs
}

// stages returns the declared stages, or one for each child in reverse. What was
// added goes first, all at once.
func (g *group) stages() []Stage {
	g.mu.Lock()
	defer g.mu.Unlock()
	var added []string
	var reverse []Stage
	for i := len(g.kids) - 1; i >= 0; i-- {
		if k := g.kids[i]; k.added {
			added = append(added, k.spec.Name)
		} else if !k.body.closed() {
			reverse = append(reverse, Stage{Name: k.spec.Name, Close: []string{k.spec.Name}})
		}
	}
	var out []Stage
	if added != nil {
		out = append(out, Stage{Name: "added", Close: added})
	}
	if g.spec.Stages != nil {
		return append(out, g.spec.Stages...)
	}
	return append(out, reverse...)
}

func (s Stage) share() int { return max(1, s.Share) }

// divide gives a stage its part of what is left of the total deadline.
func divide(ctx context.Context, share, left int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || share >= left {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)*time.Duration(share)/time.Duration(left))
}

// stage drains and closes its members concurrently. Stuck: something of it is
// neither closed nor drained.
func (g *group) stage(ctx context.Context, s Stage, why Why, cause error) (errs []error, stuck bool) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	note := func(err error, failed bool) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, err)
		}
		stuck = stuck || failed
	}
	needs := g.bringUp(ctx, s.Needs)
	defer func() { needs(stuck) }()
	for _, name := range union(s.Drain, s.Close) {
		k := g.child(name)
		if k == nil {
			continue
		}
		wg.Go(func() {
			if contains(s.Drain, name) {
				err := k.body.drain(ctx)
				note(err, err != nil)
			}
			if contains(s.Close, name) {
				closed, err := k.body.close(ctx, why, cause)
				note(err, !closed)
				if closed && k.added {
					g.remove(k)
				}
			}
		})
	}
	wg.Wait()
	return errs, stuck
}

func union(a, b []string) []string {
	out := append([]string(nil), a...)
	for _, s := range b {
		if !contains(a, s) {
			out = append(out, s)
		}
	}
	return out
}

// drain drains every child that the stages drain (all of them when there are no
// stages) and all that were added. From then on nothing in the group is restarted.
func (g *group) drain(ctx context.Context) error {
	done, err := g.beginClose(ctx)
	if done || err != nil {
		return err
	}
	g.seat.set(StateDraining)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	for _, k := range g.drainable() {
		wg.Go(func() {
			err := k.body.drain(ctx)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	wg.Wait()
	return gather("drain "+g.path, errs)
}

func (g *group) drainable() []*seat {
	var out []*seat
	for _, k := range g.children() {
		named := g.spec.Stages == nil || k.added
		for _, s := range g.spec.Stages {
			named = named || contains(s.Drain, k.spec.Name)
		}
		if named {
			out = append(out, k)
		}
	}
	return out
}

// unwind ends every child in the exact reverse of the open order, one after another,
// whatever fails.
func (g *group) unwind(ctx context.Context, why Why, cause error) []error {
	var errs []error
	kids := g.children()
	for i := len(kids) - 1; i >= 0; i-- {
		errs = append(errs, g.closeHard(ctx, kids[i], why, cause))
		if kids[i].added {
			g.remove(kids[i])
		}
	}
	return errs
}

// closeHard closes k in order and, if it will not, ends it. When ctx ends first k is
// left as it is, for who called this off.
func (g *group) closeHard(ctx context.Context, k *seat, why Why, cause error) error {
	closed, err := k.body.close(ctx, why, cause)
	if !closed && ctx.Err() == nil {
		k.body.kill(ErrClosing)
		limit := g.tree.set.clock.NewTimer(k.spec.killWithin())
		defer limit.Stop()
		gone, cancel := context.WithCancel(ctx)
		defer cancel()
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			select {
			case <-limit.C():
				cancel()
			case <-gone.Done():
			}
		}()
		_ = k.body.awaitGone(gone)
		cancel()
		<-stop
		if k.body.closed() {
			_ = k.body.take()
		} else {
			err = gather("end "+k.path, []error{err, k.failure(PhaseUnwind, ErrStillRunning)})
		}
	}
	for _, f := range Leaves(err) {
		f.Phase = PhaseUnwind
	}
	return err
}

// killWithin is how long the remains of a life that was ended are waited for.
func (s Spec) killWithin() time.Duration {
	if d := s.closeWithin(); d > 0 {
		return d
	}
	return DefaultCloseWithin
}
