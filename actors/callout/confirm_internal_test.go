package callout

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/cotal-ai/authplane/messages"
)

// server confirms when it is let go.
type server struct {
	begun int // written under the turn of the confirmer
	letGo chan error
}

func (s *server) flush(ctx context.Context) error {
	s.begun++
	select {
	case err := <-s.letGo:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newServer() (*server, *confirmer) {
	s := &server{letGo: make(chan error)}
	return s, newConfirmer(s.flush)
}

func await(c *confirmer, ctx context.Context) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- c.wait(ctx) }()
	synctest.Wait()
	return answer
}

func pending(t *testing.T, answers ...<-chan error) {
	t.Helper()
	synctest.Wait()
	for i, a := range answers {
		select {
		case err := <-a:
			t.Errorf("the %d. is told %v already", i+1, err)
		default:
		}
	}
}

func TestOneFlushServesWhoCameBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer()
		first := await(c, t.Context())
		second, third := await(c, t.Context()), await(c, t.Context())
		s.letGo <- nil
		if err := <-first; err != nil {
			t.Error(err)
		}
		// The flush that is over began before these two came.
		pending(t, second, third)
		s.letGo <- nil
		if a, b := <-second, <-third; a != nil || b != nil {
			t.Errorf("told %v and %v", a, b)
		}
		if s.begun != 2 {
			t.Errorf("%d flushes, want 2", s.begun)
		}
	})
}

func TestEveryoneIsToldThatNothingIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer()
		first := await(c, t.Context())
		second, third := await(c, t.Context()), await(c, t.Context())
		s.letGo <- nil
		<-first
		s.letGo <- messages.BrokerAway
		for _, answer := range []<-chan error{second, third} {
			if err := <-answer; !errors.Is(err, messages.BrokerAway) {
				t.Errorf("told %v", err)
			}
		}
		after := await(c, t.Context())
		s.letGo <- nil
		if err := <-after; err != nil {
			t.Errorf("who came after was told %v", err)
		}
	})
}

func TestWhoLeavesHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer()
		first := await(c, t.Context())
		leaving, leave := context.WithCancel(t.Context())
		left, stays := await(c, leaving), await(c, t.Context())
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left was told %v", err)
		}
		s.letGo <- nil
		<-first
		s.letGo <- nil
		if err := <-stays; err != nil {
			t.Errorf("who stayed was told %v", err)
		}
	})
}
