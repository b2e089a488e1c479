package retirement

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is set by a test.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func someOperation(step messages.OperationStep) messages.Operation {
	return messages.Operation{ID: "o1", Kind: messages.Retirement, UID: "u1", Step: step,
		Principal: messages.Principal{Owner: "u_a", Actor: "x"}, Began: time.Unix(1, 0)}
}

func TestPausesGrowUntilAStepIsMade(t *testing.T) {
	c := &clock{at: time.Unix(1000, 0)}
	b := newBooks(c.now)
	fails := func(step messages.OperationStep) time.Duration {
		if !b.due("o1") {
			t.Fatal("it is not due")
		}
		b.started("o1")
		b.tell(messages.OperationProgress{Operation: someOperation(step), Doing: "x"})
		b.ended(someOperation(step), messages.EvictionUnproved.Because("n2"))
		p := b.show(someOperation(step))
		pause := p.RetryAt.Sub(c.at)
		if b.due("o1") || p.WaitingFor == "" || p.Next == "" || p.Doing != "" {
			t.Errorf("after a failure: %+v", p)
		}
		c.at = p.RetryAt
		return pause
	}
	last := fails(messages.StepBegun)
	for range 10 {
		next := fails(messages.StepBegun)
		if next < last || next > mostPause {
			t.Errorf("after %s it pauses %s", last, next)
		}
		last = next
	}
	if last != mostPause {
		t.Errorf("the longest pause is %s", last)
	}
	if again := fails(messages.StepRevoked); again > 2*firstPause {
		t.Errorf("after a step it pauses %s", again)
	}
}

// An actor that dies without a word is not tried all the time.
func TestWhoDiesAtOnceWaits(t *testing.T) {
	c := &clock{at: time.Unix(1000, 0)}
	b := newBooks(c.now)
	tries := 0
	for range 600 { // a minute of them
		if b.due("o1") {
			b.started("o1")
			tries++
		}
		c.at = c.at.Add(100 * time.Millisecond)
	}
	if tries < 5 || tries > 15 {
		t.Errorf("%d tries in a minute", tries)
	}
}

func TestTheEndIsHeard(t *testing.T) {
	b := newBooks(time.Now)
	over, leave := b.watch("o1")
	defer leave()
	other, leaveOther := b.watch("o2")
	b.started("o1")
	b.ended(someOperation(messages.StepBegun), errors.New("not yet"))
	select {
	case <-over:
		t.Fatal("a failure is told as the end")
	default:
	}
	b.ended(someOperation(messages.StepDone), nil)
	<-over
	select {
	case <-other:
		t.Error("another's end is told")
	default:
	}
	leaveOther()
	if len(b.watchers) != 0 || b.here("o1") {
		t.Errorf("left behind: %v, here %v", b.watchers, b.here("o1"))
	}
}

func TestTroublesNameTheNextCommand(t *testing.T) {
	var troubles Troubles
	b := newBooks(time.Now)
	b.started("o1")
	b.ended(someOperation(messages.StepRevoked), messages.EvictionUnproved.Because("server n2 does not answer"))
	b.started("o2")
	b.ended(messages.Operation{ID: "o2"}, messages.RowCorrupt)
	b.started("o3")
	b.tell(messages.OperationProgress{Operation: messages.Operation{ID: "o3"}, Doing: "waits", WaitingFor: "the longest permission runs out at noon"})
	troubles.set(b.troubled())
	if n := len(troubles.Problems()); n != 2 {
		t.Errorf("%d problems, of two that failed and one that takes its time", n)
	}
	said := strings.Join(troubles.Problems(), "\n")
	for _, want := range []string{"retirement of u_a.x waits: ", "n2", "authplane roster forget", "operation o2 waits: ", "authplane status"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in %s", want, said)
		}
	}
	b.ended(someOperation(messages.StepDone), nil)
	b.closeDown()
	troubles.set(b.troubled())
	if left := troubles.Problems(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestWhyAStepWasNotMadeStands has a step tried again: meanwhile the reason stands why
// it was not made, and no longer.
func TestWhyAStepWasNotMadeStands(t *testing.T) {
	b := newBooks(time.Now)
	op := someOperation(messages.StepRevoked)
	said := func(waiting, next string) {
		t.Helper()
		if got := b.show(op); got.WaitingFor != waiting || got.Next != next {
			t.Errorf("it waits for %q, next %q", got.WaitingFor, got.Next)
		}
	}
	b.started(op.ID)
	b.tell(messages.OperationProgress{Operation: op, Doing: "looks", WaitingFor: "server n1", Next: "forget n1"})
	b.tell(messages.OperationProgress{Operation: op, Doing: "looks"})
	said("server n1", "forget n1")
	b.ended(op, messages.EvictionUnproved.Because("server n2"))
	b.started(op.ID)
	b.tell(messages.OperationProgress{Operation: op, Doing: "looks"})
	said(b.show(op).WaitingFor, messages.EvictionUnproved.Next)
	b.tell(messages.OperationProgress{Operation: op, Doing: "looks", WaitingFor: "server n3", Next: "forget n3"})
	said("server n3", "forget n3")
	op.Step = messages.StepEvicted
	b.tell(messages.OperationProgress{Operation: op, Doing: "drains"})
	said("", "")
}

// Between two tries the command is that of this case, and no command with a gap.
func TestTheNextCommandIsThatOfTheCase(t *testing.T) {
	for next, why := range map[string]error{
		"authplane roster forget n3": &evict.Unproved{Silent: []string{"n3"}},
		"authplane roster":           &evict.Unproved{Doubts: []string{"a row that cannot be"}},
		"":                           &evict.Unproved{Live: []messages.LiveConnection{{}}},
		"authplane status":           messages.RowCorrupt,
	} {
		b := newBooks(time.Now)
		b.started("o")
		op := messages.Operation{ID: "o", Kind: messages.Takeover, Step: messages.StepRevoked}
		if b.ended(op, fmt.Errorf("evict: %w", why)); b.show(op).Next != next {
			t.Errorf("%v: next is %q", why, b.show(op).Next)
		}
	}
}
