package callout

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/messages"
)

func TestAResponderThatCannotReadLeavesTheGroup(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.becomes(1, 0)
	s.knock()
	s.fails(messages.Unproved.Because("there is no leader"))
	began := time.Now()
	s.knock() // one is enough: it watches by itself from here on
	s.becomes(0, 1)
	if took := time.Since(began); took < leaveAfter {
		t.Errorf("it left after %v", took)
	}
	before := len(s.denials.List())
	s.works()
	s.becomes(1, 0)
	s.knock()
	list := s.denials.List()
	if len(list) <= before || list[0].Kind != messages.Denied || list[0].Reason != messages.NotGranted.Reason {
		t.Errorf("what it hears is not answered: %+v", list)
	}
	// And again.
	s.fails(messages.ActorAway)
	s.knock()
	s.becomes(0, 1)
	s.works()
	s.becomes(1, 0)
}

// A reader that is gone, or says nothing, is as good as one that refuses.
func TestAReaderThatSaysNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer.Store(func(func(any)) {})
	s.knock()
	s.becomes(0, 1)
	s.works()
	s.becomes(1, 0)
}

// A record that cannot be read is no inability, nor are reads that fail now and then.
func TestOneFailureIsNoInability(t *testing.T) {
	t.Parallel()
	s := start(t)
	var bad int
	for _, tc := range []struct {
		err    error
		usable bool
	}{
		{nil, true}, {messages.Malformed, true}, {messages.Unproved, false}, {messages.BrokerAway.From(errors.New("x")), false},
		{messages.ActorAway, false}, {messages.Busy, false}, {messages.InternalFault.From(context.DeadlineExceeded), false},
	} {
		if got := usable(tc.err); got != tc.usable {
			t.Errorf("%v: %v", tc.err, got)
		}
	}
	s.answer.Store(func(to func(any)) { // every second read fails
		if bad++; bad%2 == 0 {
			to(messages.Unproved)
		} else {
			to(messages.Authority{})
		}
	})
	for began := time.Now(); time.Since(began) < leaveAfter+2*probeEvery; {
		s.knock()
		if in, _ := s.members(); len(in) != 1 {
			t.Fatal("it left the group")
		}
	}
}

// A connection that is renewed while the group is left joins it only later.
func TestRenewalsOutsideTheGroup(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *broker.Config) { c.StandingLifetime = 4 * time.Second })
	s.fails(messages.Unproved)
	s.knock()
	s.becomes(0, 1)
	_, first := s.members()
	natsdtest.Eventually(t, "it is renewed, outside the group", func() error {
		in, out := s.members()
		if len(in) > 0 {
			t.Fatal("the new connection is in the group")
		}
		if len(out) != 1 || out[0] == first[0] {
			return errors.New("not yet")
		}
		return nil
	})
	s.works()
	s.becomes(1, 0)
	s.knock()
}

// Outside the group a responder drains and closes at once.
func TestCloseOutsideTheGroup(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.fails(messages.Unproved)
	s.knock()
	s.becomes(0, 1)
	began := time.Now()
	s.must(s.tree.Close(t.Context()))
	if took := time.Since(began); took > leaveAfter {
		t.Errorf("it took %v", took)
	}
	s.becomes(0, 0)
}
