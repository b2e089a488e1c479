package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A group decides over its children. One procedure at a time, the lane, does what
// concerns several of them: the first open, a regrouping, a fence. Restarts of single
// children run beside it. Everything is decided under one lock, which is never held
// while something is waited for. Locks are taken from the root downwards.
type group struct {
	seat *seat // nil for the crown
	tree *Tree
	spec *Group
	path string

	mu         sync.Mutex
	phase      groupPhase
	generation uint64
	kids       []*seat // in open order; those added later come last
	busy       bool    // the lane runs
	lane       *flight // the lane, when it is a goroutine of its own
	attempt    context.CancelCauseFunc
	request    request
	healing    *healing
	failure    error // why it fails
	suspended  bool  // a fence above: nothing may be added
	changed    chan struct{}
	collapsing chan struct{} // closed when a failure has been unwound
	fences     record
}

type groupPhase uint8

const (
	groupClosed  groupPhase = iota
	groupOpening            // the first open runs
	groupOpen
	groupFailing // what is open is unwound, then it fails upward
	groupFailed  // the root only: what is open stays so until the tree is closed
	groupClosing
)

// errRegroup calls off what the lane is doing because it has something else to do first.
var errRegroup = errors.New("siblings regroup")

// open brings every child up in order, or none.
func (g *group) open(ctx context.Context) (uint64, error) {
	generation := uint64(1)
	if g.seat != nil {
		generation = g.seat.begin()
	}
	began := g.tree.set.clock.Now()
	g.reset(generation)
	if g.seat != nil {
		g.tree.emit(Opening{g.tree.origin(g.path, generation)})
	}
	limited, cancel := g.limitOpen(ctx)
	defer cancel()
	err := g.run(limited)
	if err == nil {
		if g.seat != nil {
			g.tree.emit(Opened{Origin: g.tree.origin(g.path, generation), Took: g.tree.since(began)})
		}
		return generation, nil
	}
	g.mu.Lock()
	g.phase = groupFailing
	g.mu.Unlock()
	g.stopOps(context.Background(), err)
	errs := append([]error{err}, g.unwind(context.Background(), Unwinding, err)...)
	g.mu.Lock()
	g.phase = groupClosed
	g.mu.Unlock()
	err = gather("open "+g.path, errs)
	if g.seat != nil {
		g.seat.fault(StateClosed, err)
	}
	return generation, err
}

// limitOpen applies the OpenWithin of a group, if it has one.
func (g *group) limitOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	if g.seat == nil || g.seat.spec.openWithin() == 0 {
		return ctx, func() {}
	}
	limited, cancel := context.WithCancelCause(ctx)
	timer := g.tree.set.clock.NewTimer(g.seat.spec.openWithin())
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-timer.C():
			cancel(g.seat.failure(PhaseOpen, ErrLate))
		case <-limited.Done():
		}
	}()
	return limited, func() { cancel(nil); timer.Stop(); <-done }
}

func (g *group) reset(generation uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.generation, g.phase, g.busy = generation, groupOpening, true
	g.request, g.healing, g.failure, g.fences = request{}, nil, nil, record{}
	g.collapsing = nil
	g.suspend(false) // by a fence that did not come to its end
	for _, k := range g.kids {
		k.up, k.taken, k.finished, k.record, k.notBefore = 0, false, false, record{}, time.Time{}
	}
}

func (g *group) alive(generation uint64) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.generation == generation && g.phase != groupFailing && g.phase != groupClosed, g.failure
}

func (g *group) closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.phase == groupClosed && len(g.leftovers()) == 0
}

// leftovers are children of which something is left.
func (g *group) leftovers() []*seat {
	var out []*seat
	for _, k := range g.kids {
		if !k.body.closed() {
			out = append(out, k)
		}
	}
	return out
}

func (g *group) take() error { return nil }

func (g *group) dealt(uint64) {}

func (g *group) awaitGone(ctx context.Context) error {
	for _, k := range g.children() {
		if err := k.body.awaitGone(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) kill(cause error) {
	for _, k := range g.children() {
		k.body.kill(cause)
	}
}

func (g *group) children() []*seat {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*seat(nil), g.kids...)
}

func (g *group) child(name string) *seat {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range g.kids {
		if k.spec.Name == name {
			return k
		}
	}
	return nil
}

// change wakes the lane when it waits for a child that restarts by itself.
func (g *group) change() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// fail makes the group fail with cause. It needs the lock.
func (g *group) fail(cause error) {
	if g.failure != nil || g.phase != groupOpen && g.phase != groupOpening {
		return
	}
	g.failure = cause
	g.interrupt(cause)
	if g.phase == groupOpening {
		return // open reports it
	}
	g.tree.emit(Failed{Origin: g.tree.origin(g.path, g.generation), Cause: cause})
	if g.seat == nil || g.seat.parent == g.tree.crown {
		g.phase = groupFailed
		g.tree.fail(cause)
		return
	}
	g.phase = groupFailing
	g.seat.fault(StateClosing, cause)
	g.collapsing = make(chan struct{})
	go g.collapse(cause, g.generation, g.collapsing) // close waits for it
}

// collapse unwinds a failed group and reports its death.
func (g *group) collapse(cause error, generation uint64, done chan struct{}) {
	g.stopOps(context.Background(), cause)
	errs := append([]error{cause}, g.unwind(context.Background(), Unwinding, cause)...)
	g.mu.Lock()
	g.phase = groupClosed
	g.mu.Unlock()
	g.seat.set(StateClosed)
	parent := g.seat.parent
	parent.mu.Lock()
	defer parent.mu.Unlock()
	close(done)
	parent.died(g.seat, generation, gather("run "+g.path, errs))
}
