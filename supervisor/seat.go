package supervisor

import (
	"context"
	"sync"
	"time"
)

// A seat is the place of one child in its group: what it is, where it stands, and
// how often it died. The group decides over it.
type seat struct {
	tree   *Tree
	parent *group // nil for the crown, the hidden group above the root
	spec   Spec
	path   string
	added  bool // not in the Spec of its group
	body   body

	// Guarded by the group's lock.
	up        uint64  // generation in which it is open, 0 when it is not
	taken     bool    // the lane, a close or a removal decides over it: deaths are theirs to see
	finished  bool    // it ended for good
	op        *flight // its own restart, first open or removal
	record    record
	notBefore time.Time // when it may be opened again

	// For snapshots.
	mu         sync.Mutex
	state      State
	next       State // what it will be when nothing is left of its life
	since      time.Time
	opened     time.Time
	generation uint64
	restarts   uint64
	lastError  error
}

// A body is what sits on a seat: a leaf or a group.
type body interface {
	// open begins a new life and returns when it is open. When it fails nothing is
	// left of it but what is still running.
	open(ctx context.Context) (generation uint64, err error)
	// alive reports whether the life with that generation is still open, and if not why.
	alive(generation uint64) (bool, error)
	drain(ctx context.Context) error
	// close ends it in order. Closed false: it is still there and may be asked again.
	close(ctx context.Context, why Why, cause error) (closed bool, err error)
	// kill ends it without asking. Its end is not reported to the group.
	kill(cause error)
	// awaitGone waits until nothing is left of the last life.
	awaitGone(ctx context.Context) error
	// closed reports whether nothing of it is left.
	closed() bool
	// dealt says that the end of a life has been dealt with: take does not return it.
	dealt(generation uint64)
	// take returns, once, a failure with which it ended and that nobody was told of.
	take() error
}

func (s *seat) set(state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(state)
}

func (s *seat) setLocked(state State) {
	if s.state != state {
		s.state, s.since = state, s.tree.set.clock.Now()
		if state == StateOpen {
			s.opened = s.since
		}
	}
}

func (s *seat) fault(state State, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(state)
	if err != nil {
		s.lastError = err
	}
}

// fate says what becomes of it when nothing is left of its life.
func (s *seat) fate(next State, err error) {
	s.fault(next, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = next
}

// settle is called when nothing is left of a life.
func (s *seat) settle(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.lastError = err
	}
	if s.state != StateOpening {
		s.setLocked(s.next)
	}
}

// begin starts the next generation.
func (s *seat) begin() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	s.setLocked(StateOpening)
	s.next = StateClosed
	return s.generation
}

func (s *seat) current() (State, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.generation
}

// openedAt is when it opened last.
func (s *seat) openedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

func (s *seat) origin() Origin {
	_, generation := s.current()
	return s.tree.origin(s.path, generation)
}

// lifeOver tells the group of a life that is over.
func (s *seat) lifeOver(l *Life) {
	cause := l.failure()
	if l.orderly {
		cause = nil
	}
	s.parent.mu.Lock()
	defer s.parent.mu.Unlock()
	s.parent.died(s, l.generation, cause)
}

// stillRunning tells that what is left of a life does not end.
func (s *seat) stillRunning(l *Life) {
	what := l.running()
	s.set(StateStillRunning)
	s.tree.emit(StillRunning{Origin: s.tree.origin(s.path, l.generation), What: what})
}

func (s *seat) failure(phase Phase, cause error) *Failure {
	return &Failure{Path: s.path, Label: s.label(), Phase: phase, Cause: cause}
}

func (s *seat) label() string {
	if s.spec.Label != "" {
		return s.spec.Label
	}
	if lf, ok := s.body.(*leaf); ok {
		return lf.label()
	}
	return ""
}

func (s *seat) node() Node {
	n := Node{Path: s.path, Label: s.label()}
	switch b := s.body.(type) {
	case *group:
		n.Group = true
	case *leaf:
		if l := b.life(); l != nil {
			n.Waiting, n.InFlight = l.mailbox.counts()
			if l.ended() {
				n.Running = l.running()
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n.State, n.Since = s.state, s.since
	n.Generation, n.Restarts, n.LastError = s.generation, s.restarts, s.lastError
	return n
}

// A flight is a procedure that runs in a goroutine and can be called off.
type flight struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

func (f *flight) stop(cause error) {
	if f != nil {
		f.cancel(cause)
	}
}
