package supervisor

import (
	"context"
	"errors"
)

// The lane brings the group to where every child of its Spec is open, one step after
// the other. Each step is chosen anew, so that a request that arrives meanwhile comes
// first: it calls off the step that is running.

// run is the lane. It ends when everything is open, when the group fails, or with ctx.
func (g *group) run(ctx context.Context) error {
	for {
		step, err := g.nextStep(ctx)
		if step == nil {
			return err
		}
		step()
	}
}

func (g *group) nextStep(ctx context.Context) (step func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.failure != nil:
		g.busy = false
		return nil, g.failure
	case ctx.Err() != nil:
		g.busy = false
		return nil, context.Cause(ctx)
	case g.request.pending:
		r := g.request
		g.request = request{}
		return func() { g.regroup(ctx, r) }, nil
	}
	attempt, cancel := context.WithCancelCause(ctx)
	g.attempt = cancel
	if k := g.firstDown(); k != nil {
		k.taken = true
		return func() { defer cancel(nil); g.raise(attempt, k) }, nil
	}
	if g.waits() {
		changed := make(chan struct{})
		g.change()
		g.changed = changed
		return func() { defer cancel(nil); await(attempt, changed) }, nil
	}
	cancel(nil)
	g.arrived()
	return nil, nil
}

// arrived: everything is open. It needs the lock.
func (g *group) arrived() {
	g.busy, g.attempt = false, nil
	g.phase = groupOpen
	if g.seat != nil {
		g.seat.set(StateOpen)
	}
	g.healed()
}

// firstDown is the first child in open order that nobody is bringing up.
func (g *group) firstDown() *seat {
	for _, k := range g.kids {
		if k.up == 0 && k.op == nil && !k.taken && !k.finished {
			return k
		}
	}
	return nil
}

// waits reports whether a child of the Spec is restarting by itself.
func (g *group) waits() bool {
	for _, k := range g.kids {
		if !k.added && k.up == 0 && k.op != nil {
			return true
		}
	}
	return false
}

// interrupt calls off the current step. It needs the lock.
func (g *group) interrupt(cause error) {
	if g.attempt != nil {
		g.attempt(cause)
	}
	g.change()
}

// poke makes the lane look at what there is to do. It needs the lock.
func (g *group) poke() {
	if g.seat != nil && g.phase == groupOpen {
		g.seat.set(StateRestarting)
	}
	if g.busy {
		g.interrupt(errRegroup)
		return
	}
	if g.phase != groupOpen {
		return
	}
	g.busy = true
	ctx, cancel := context.WithCancelCause(context.Background())
	f := &flight{cancel: cancel, done: make(chan struct{})}
	g.lane = f
	go func() { // stopOps waits for it
		defer close(f.done)
		defer cancel(nil)
		_ = g.run(ctx) // a failure is the group's and already dealt with
	}()
}

// raise opens one child. Its old life has to be gone first, and its backoff over.
func (g *group) raise(ctx context.Context, k *seat) {
	generation, err := uint64(0), g.ready(ctx, k)
	if err == nil {
		generation, err = k.body.open(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	k.taken = false
	switch {
	case err == nil:
		g.raised(k, generation)
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)): // called off
	default:
		g.openFailed(k, err)
	}
}

// ready waits until k may be opened.
func (g *group) ready(ctx context.Context, k *seat) error {
	if err := k.body.awaitGone(ctx); err != nil {
		return err
	}
	g.mu.Lock()
	wait := k.notBefore.Sub(g.tree.set.clock.Now())
	g.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	timer := g.tree.set.clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// raised notes that k is open, unless it has died already. It needs the lock.
func (g *group) raised(k *seat, generation uint64) {
	k.up = generation
	k.record.opened = k.openedAt()
	if ok, why := k.body.alive(generation); !ok {
		g.died(k, generation, why)
	}
}

// openFailed decides what a child that did not open means to the lane: the end of
// the first open, or one more death. It needs the lock.
func (g *group) openFailed(k *seat, err error) {
	if k.finished { // being removed
		return
	}
	if g.phase == groupOpening && !isOutage(err) {
		g.fail(err)
		return
	}
	g.countDeath(k, err)
}

func await(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}
