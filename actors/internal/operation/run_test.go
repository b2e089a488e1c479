package operation_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/operation"
	"github.com/cotal-ai/authplane/messages"
)

// services have work of a principal; they say it is done before it is.
type services struct {
	left   []string
	passes int // drains until it is done
	calls  int
}

func (s *services) Drain(context.Context, messages.Operation) error {
	if s.calls++; s.calls == s.passes {
		s.left = nil
	}
	return nil
}

func (s *services) Left(context.Context, messages.Operation) ([]string, error) { return s.left, nil }

func TestADrainIsNotBelieved(t *testing.T) {
	for passes, done := range map[int]bool{1: true, 4: true, 5: false} {
		w := newWorld(t)
		p, err := w.boot(t.Context(), w.backend)
		w.must(err)
		id, err := p.begin(t.Context(), messages.Retirement)
		w.must(err)
		ports := p.ports()
		ports.Drainer = &services{left: []string{"item 7 of shop"}, passes: passes}
		op, err := operation.Run(t.Context(), ports, id)
		if done {
			w.must(err)
			w.check(op, messages.Retirement)
			continue
		}
		if !errors.Is(err, messages.DrainUnproved) || !strings.Contains(err.Error(), "item 7 of shop") || op.Step != messages.StepEvicted {
			t.Errorf("%d passes: %v at %s", passes, err, op.Step)
		}
		if head := w.head(); head.State == messages.HeadRetired {
			t.Error("it is retired all the same")
		}
		op, err = operation.Run(t.Context(), ports, id) // the same work, one more pass
		w.must(err)
		w.check(op, messages.Retirement)
		if w.evicted != 1 {
			t.Errorf("evicted %d times", w.evicted)
		}
	}
}

// stubborn cannot prove that somebody is gone.
type stubborn struct{ operation.Evictor }

func (stubborn) Evict(context.Context, messages.Operation, time.Time) (operation.Evicted, error) {
	return operation.Evicted{}, messages.EvictionUnproved.Because("server n2 does not answer")
}

func TestWhoIsNotProvedGoneIsNotGone(t *testing.T) {
	for _, kind := range []messages.OperationKind{messages.Takeover, messages.Retirement} {
		w := newWorld(t)
		p, err := w.boot(t.Context(), w.backend)
		w.must(err)
		id, err := p.begin(t.Context(), kind)
		w.must(err)
		ports := p.ports()
		ports.Evictor = stubborn{}
		op, err := operation.Run(t.Context(), ports, id)
		if !errors.Is(err, messages.EvictionUnproved) || op.Step != messages.StepRevoked || op.Outcome.Revoked != issued {
			t.Errorf("%s: %v at %+v", kind, err, op)
		}
		head := w.head()
		if head.State == messages.HeadActive || head.State == messages.HeadRetired || head.Epoch != 1 {
			t.Errorf("%s: the head is %+v", kind, head)
		}
		if _, err := w.writer().Enrol(t.Context(), messages.Enrol{Principal: laptop, UID: w.uid}); !errors.Is(err, messages.GateShut) {
			t.Errorf("%s: enrol: %v", kind, err)
		}
		op, err = operation.Run(t.Context(), p.ports(), id)
		w.must(err)
		w.check(op, kind)
	}
}

// A retirement does not wait for a takeover that cannot end; nor does the takeover
// go on.
func TestARetirementEndsATakeover(t *testing.T) {
	w := newWorld(t)
	p, err := w.boot(t.Context(), w.backend)
	w.must(err)
	takeover, err := p.begin(t.Context(), messages.Takeover)
	w.must(err)
	ports := p.ports()
	ports.Evictor = stubborn{}
	if _, err := operation.Run(t.Context(), ports, takeover); !errors.Is(err, messages.EvictionUnproved) {
		t.Fatal(err)
	}
	op, err := p.run(t.Context(), messages.Retirement)
	w.must(err)
	w.check(op, messages.Retirement)
	superseded, err := operation.Run(t.Context(), p.ports(), takeover)
	if err != nil || superseded.Step != messages.StepSuperseded {
		t.Errorf("the takeover is %s, %v", superseded.Step, err)
	}
	owed, err := p.held.Lane().Owed(t.Context())
	if err != nil || len(owed.Ops) > 0 {
		t.Errorf("owed: %v, %v", owed, err)
	}
}

// Whoever is done is not done again, and nobody else is touched.
func TestWhatIsDoneStaysDone(t *testing.T) {
	w := newWorld(t)
	p, err := w.boot(t.Context(), w.backend)
	w.must(err)
	first, err := p.run(t.Context(), messages.Retirement)
	w.must(err)
	successor, err := w.writer().PutGrant(t.Context(), messages.PutGrant{Principal: laptop, Kind: messages.Interactive, By: "x"})
	w.must(err)
	_, err = w.writer().Enrol(t.Context(), messages.Enrol{Principal: laptop, UID: successor.UID})
	w.must(err)
	again, err := p.run(t.Context(), messages.Retirement)
	w.must(err)
	if again.ID != first.ID || !again.Ended.Equal(first.Ended) || w.evicted != 1 {
		t.Errorf("first %+v, then %+v after %d evictions", first, again, w.evicted)
	}
	if head := w.head(); head.UID != successor.UID || head.State != messages.HeadActive {
		t.Errorf("the successor is %+v", head)
	}
}

// Whoever follows hears every step, in order.
func TestProgress(t *testing.T) {
	w := newWorld(t)
	p, err := w.boot(t.Context(), w.backend)
	w.must(err)
	id, err := p.begin(t.Context(), messages.Retirement)
	w.must(err)
	var doing []string
	ports := p.ports()
	ports.Tell = func(p messages.OperationProgress) { doing = append(doing, p.Doing) }
	_, err = operation.Run(t.Context(), ports, id)
	w.must(err)
	want := []string{"enumerating credentials", "revoking credentials", "revoking credentials", "evicting", "committing"}
	if !slices.Equal(doing, want) {
		t.Errorf("heard %q", doing)
	}
}
