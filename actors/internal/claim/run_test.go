package claim_test

import (
	"context"
	"errors"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// state is what the row of the plane says.
func (s *space) state() messages.ClaimState {
	s.Helper()
	c, err := ledger.DecodeClaim(s.plane())
	if err != nil {
		s.Fatal(err)
	}
	return c.State
}

func TestARunGivesBackWhatWasFenced(t *testing.T) {
	s := newSpace(t)
	line := &counted{Backend: s.backend}
	mine := s.over(line)
	s.acquire(mine).Fence(errors.New("a scanner was lost"))
	line.setAway(true)
	s.want("without the broker", mine.Run.Release(t.Context(), mine.Store), messages.ReleaseUnreachable)
	line.setAway(false)
	if err := mine.Run.Release(t.Context(), mine.Store); err != nil {
		t.Fatal(err)
	}
	if got := s.state(); got != messages.ClaimFree {
		t.Errorf("the plane is %s", got)
	}
	gets, sends := line.count()
	if err := mine.Run.Release(t.Context(), mine.Store); err != nil {
		t.Error(err)
	}
	if g, n := line.count(); g != gets || n != sends {
		t.Error("it asks again about what it has given back")
	}
	s.acquire(s.process()) // without asking anybody
	if n := s.servers.questions(); n != 0 {
		t.Errorf("a successor asked %d times", n)
	}
}

// A claim whose answer was lost is this process's all the same.
func TestARunGivesBackWhatItDoesNotKnowItHas(t *testing.T) {
	s := newSpace(t)
	line := &silent{Backend: s.backend}
	mine := s.over(line)
	ctx, cancel := context.WithCancel(t.Context())
	line.after = cancel
	if _, err := claim.Acquire(ctx, mine); !errors.Is(err, messages.OutcomeUnknown) {
		t.Fatalf("acquire: %v", err)
	}
	if got := s.state(); got != messages.ClaimHeld {
		t.Fatalf("the plane is %s", got)
	}
	line.after = nil
	if err := mine.Run.Release(t.Context(), mine.Store); err != nil {
		t.Fatal(err)
	}
	if got := s.state(); got != messages.ClaimFree {
		t.Errorf("the plane is %s", got)
	}
}

// silent lands what is sent and loses the answer, while after is set.
type silent struct {
	ledger.Backend
	after func()
}

func (l *silent) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	last, err := l.Backend.Send(ctx, b)
	if l.after == nil {
		return last, err
	}
	l.after()
	return 0, ledger.ErrUnknown
}

func TestARunLeavesAloneWhatIsNotItsOwn(t *testing.T) {
	s := newSpace(t)
	line := &counted{Backend: s.backend}
	mine := s.over(line)
	held := s.acquire(mine)
	s.died(held)
	s.acquire(s.process()) // another takes over
	at := s.plane().Revision
	if err := mine.Run.Release(t.Context(), mine.Store); err != nil {
		t.Error(err)
	}
	if s.plane().Revision != at {
		t.Error("the row was touched")
	}
	line.setAway(true) // by now it is known that there is nothing to give back
	if err := mine.Run.Release(t.Context(), mine.Store); err != nil {
		t.Error(err)
	}
}

// Whoever saw another holder while he waited owes nothing, and asks nobody at his end.
func TestARunThatOnlyWaitsOwesNothing(t *testing.T) {
	s := newSpace(t)
	line := &counted{Backend: s.backend}
	mine := s.over(line)
	held := s.acquire(mine)
	s.died(held)
	next := s.acquire(s.process())
	s.servers.say(next.Claim().Ledger, messages.Live)
	_, err := claim.Acquire(t.Context(), mine)
	s.want("acquire", err, messages.ClaimLivePeer)
	line.setAway(true)
	if err := mine.Run.Release(t.Context(), mine.Store); err != nil {
		t.Error(err)
	}
	if err := new(claim.Run).Release(t.Context(), mine.Store); err != nil {
		t.Errorf("a run that never claimed: %v", err)
	}
}

func TestARunDoesNotGiveBackWhatIsNoClaim(t *testing.T) {
	s := newSpace(t)
	mine := s.process()
	s.acquire(mine)
	s.put([]byte(`{"v":2}`))
	s.want("release", mine.Run.Release(t.Context(), mine.Store), messages.ClaimLost)
}
