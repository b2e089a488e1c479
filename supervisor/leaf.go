package supervisor

import (
	"context"
	"sync"
	"time"
)

// A leaf runs one life after the other.
type leaf struct {
	seat *seat
	addr *address

	mu      sync.Mutex
	now     *Life  // nil when nothing is left of the last one
	drained bool   // the current life answered Drain
	last    error  // how the last life ended, when that is a failure
	unsaid  error  // the same, when nobody was told of it
	said    uint64 // generation whose end has been dealt with
	owing   bool   // a life began, and none has been closed for good since
	called  string // label of the last life
}

func (lf *leaf) life() *Life {
	lf.mu.Lock()
	defer lf.mu.Unlock()
	return lf.now
}

func (lf *leaf) label() string {
	lf.mu.Lock()
	defer lf.mu.Unlock()
	if lf.now == nil {
		return lf.called
	}
	lf.now.mu.Lock()
	defer lf.now.mu.Unlock()
	if lf.now.label != "" {
		lf.called = lf.now.label
	}
	return lf.called
}

func (lf *leaf) open(ctx context.Context) (uint64, error) {
	t := lf.seat.tree
	if err := ctx.Err(); err != nil {
		return 0, context.Cause(ctx)
	}
	l := lf.begin()
	generation := l.generation
	began := t.set.clock.Now()
	t.emit(Opening{t.origin(lf.seat.path, generation)})
	l.run(&Open{})

	timer := t.set.clock.NewTimer(lf.seat.spec.openWithin())
	defer timer.Stop()
	select {
	case <-l.opened:
	case <-l.over:
	case <-ctx.Done():
		l.giveUp(context.Cause(ctx))
	case <-timer.C():
		l.giveUp(ErrLate)
	}
	select {
	case <-l.opened: // if it is over by now, that was a death and not a failed open
		lf.seat.set(StateOpen)
		t.emit(Opened{Origin: t.origin(lf.seat.path, generation), Took: t.since(began)})
		return generation, nil
	default:
	}
	cause := l.failure()
	if cause == nil {
		cause = lf.seat.failure(PhaseOpen, ErrEnded)
	}
	lf.dealt(generation)
	lf.limitedGone(l)
	lf.seat.fault(StateClosed, cause)
	return generation, cause
}

// begin makes the next life.
func (lf *leaf) begin() *Life {
	l := lf.newLife(lf.seat.begin())
	lf.mu.Lock()
	defer lf.mu.Unlock()
	lf.now, lf.drained, lf.unsaid, lf.owing = l, false, nil, lf.seat.spec.Owes
	return l
}

// owes reports whether a close for that reason has to settle what no life of the leaf
// has settled.
func (lf *leaf) owes(why Why) bool {
	lf.mu.Lock()
	defer lf.mu.Unlock()
	return lf.owing && (why == Shutdown || why == Removing)
}

// lastLife makes a life that only closes.
func (lf *leaf) lastLife() *Life {
	l := lf.begin()
	l.run()
	return l
}

// settled notes that l answered a close after which nothing is owed.
func (lf *leaf) settled(why Why, l *Life) {
	lf.mu.Lock()
	defer lf.mu.Unlock()
	if l.orderly && (why == Shutdown || why == Removing) {
		lf.owing = false
	}
}

// limitedGone waits for what is left of a life that is over, but not for ever.
func (lf *leaf) limitedGone(l *Life) bool {
	timer := lf.seat.tree.set.clock.NewTimer(lf.seat.spec.closeWithin())
	defer timer.Stop()
	select {
	case <-l.gone:
		return true
	case <-timer.C():
		return false
	}
}

func (lf *leaf) alive(generation uint64) (bool, error) {
	lf.mu.Lock()
	l, last := lf.now, lf.last
	lf.mu.Unlock()
	if l == nil || l.generation != generation {
		return false, last
	}
	return !l.ended(), l.failure()
}

func (lf *leaf) drain(ctx context.Context) error {
	l := lf.life()
	if l == nil || lf.hasDrained() {
		return nil
	}
	timer := lf.seat.tree.set.clock.NewTimer(lf.seat.spec.closeWithin())
	defer timer.Stop()
	if !l.askDrain(lf.deadline(ctx)) {
		return nil
	}
	select {
	case err := <-l.drained:
		lf.seat.tree.emit(Drained{Origin: lf.seat.origin(), Err: err})
		if err != nil {
			return lf.seat.failure(PhaseDrain, err)
		}
		lf.mu.Lock()
		defer lf.mu.Unlock()
		lf.drained = true
		return nil
	case <-l.over: // its close reports how it ended
		return nil
	case <-timer.C():
	case <-ctx.Done():
	}
	l.mu.Lock()
	l.asked = false // a retry asks again
	l.mu.Unlock()
	lf.seat.tree.emit(StillRunning{Origin: lf.seat.origin(), What: []string{"drain"}})
	return lf.seat.failure(PhaseDrain, ErrStillRunning)
}

func (lf *leaf) hasDrained() bool {
	lf.mu.Lock()
	defer lf.mu.Unlock()
	return lf.drained
}

func (lf *leaf) close(ctx context.Context, why Why, cause error) (bool, error) {
	l := lf.life()
	if l != nil {
		closed, err := lf.closeLife(ctx, l, why, cause)
		if !closed || !lf.owes(why) {
			return closed, err
		}
		// It died before it could settle what it owes; another one shall.
		closed, more := lf.closeLife(ctx, lf.lastLife(), why, cause)
		return closed, gather("close "+lf.seat.path, []error{err, more})
	}
	if !lf.owes(why) {
		return true, lf.take()
	}
	return lf.closeLife(ctx, lf.lastLife(), why, cause)
}

// closeLife asks one life to close and waits until nothing is left of it.
func (lf *leaf) closeLife(ctx context.Context, l *Life, why Why, cause error) (bool, error) {
	timer := lf.seat.tree.set.clock.NewTimer(lf.seat.spec.closeWithin())
	defer timer.Stop()
	l.askClose(why, cause, lf.deadline(ctx))
	select {
	case <-l.over:
	case err := <-l.refused:
		lf.seat.fault(StateClosing, err)
		lf.seat.tree.emit(CloseRefused{Origin: lf.seat.origin(), Err: err})
		return false, lf.seat.failure(PhaseClose, err)
	case <-timer.C():
		return false, lf.late(l)
	case <-ctx.Done():
		return false, lf.late(l)
	}
	select {
	case <-l.gone:
		lf.settled(why, l)
		return true, lf.take()
	case <-timer.C():
	case <-ctx.Done():
	}
	return false, lf.late(l)
}

// late reports a life that has not closed in time. A retry asks it again, since
// nobody can tell an answer that takes long from one that will not come.
func (lf *leaf) late(l *Life) error {
	l.mu.Lock()
	l.closing = false
	l.mu.Unlock()
	lf.seat.set(StateStillRunning)
	what := []string{"close"}
	if l.ended() {
		what = l.running()
	}
	lf.seat.tree.emit(StillRunning{Origin: lf.seat.origin(), What: what})
	return lf.seat.failure(PhaseClose, ErrStillRunning)
}

// deadline is when an answer is no longer waited for.
func (lf *leaf) deadline(ctx context.Context) time.Time {
	at := time.Now().Add(lf.seat.spec.closeWithin())
	if d, ok := ctx.Deadline(); ok && d.Before(at) {
		return d
	}
	return at
}

func (lf *leaf) dealt(generation uint64) {
	lf.mu.Lock()
	defer lf.mu.Unlock()
	lf.said = generation
	if lf.now == nil {
		lf.unsaid = nil
	}
}

// take returns how the last life ended, once, if that was a failure.
func (lf *leaf) take() error {
	lf.mu.Lock()
	defer lf.mu.Unlock()
	err := lf.unsaid
	lf.unsaid = nil
	return err
}

func (lf *leaf) kill(cause error) {
	if l := lf.life(); l != nil {
		l.die(cause)
	}
}

func (lf *leaf) awaitGone(ctx context.Context) error {
	l := lf.life()
	if l == nil {
		return nil
	}
	select {
	case <-l.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (lf *leaf) closed() bool { return lf.life() == nil }

// lifeGone is called when nothing is left of l.
func (lf *leaf) lifeGone(l *Life) {
	failure := l.failure()
	unsaid := failure
	l.mu.Lock()
	label, cause := l.label, l.cause
	l.mu.Unlock()
	lf.seat.settle(failure)
	if l.orderly {
		lf.seat.tree.emit(Closed{Origin: lf.seat.tree.origin(lf.seat.path, l.generation), Err: cause})
	}
	lf.mu.Lock()
	defer lf.mu.Unlock()
	if label != "" {
		lf.called = label
	}
	if lf.said == l.generation || isOutage(failure) { // an outage is nobody's failure
		unsaid = nil
	}
	lf.now, lf.last, lf.unsaid = nil, failure, unsaid // from here on the next life may begin
}

// failure is why the life is over, as an error of its leaf; nil after an orderly end.
func (l *Life) failure() error {
	l.mu.Lock()
	cause, phase, label := l.cause, l.diedIn, l.label
	l.mu.Unlock()
	if cause == nil {
		return nil
	}
	if l.seat.spec.Label != "" {
		label = l.seat.spec.Label
	}
	return &Failure{Path: l.seat.path, Label: label, Phase: phase, Cause: cause}
}

// askDrain sends Drain unless one is unanswered and in time. False: the life is over.
func (l *Life) askDrain(deadline time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.phase == lifeOver:
		return false
	case l.asked:
		return true
	case l.phase == lifeOpen:
		l.phase = lifeDraining
	}
	l.asked = true
	forget(l.drained)
	l.seat.set(StateDraining)
	l.tree.emit(Draining{l.tree.origin(l.seat.path, l.generation)})
	l.tell(&Drain{Deadline: deadline})
	return true
}

// askClose sends Close unless one is unanswered and in time. From now on only what the life
// tells itself reaches it.
func (l *Life) askClose(why Why, cause error, deadline time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == lifeOver || l.closing {
		return
	}
	l.phase, l.closing = lifeClosing, true
	forget(l.refused)
	l.addr.set(l, l.addr.closing)
	l.seat.set(StateClosing)
	l.tree.emit(Closing{Origin: l.tree.origin(l.seat.path, l.generation), Why: why})
	l.tell(&Close{Why: why, Cause: cause, Deadline: deadline})
}
