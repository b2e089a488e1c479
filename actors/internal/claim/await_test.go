package claim_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/messages"
)

// outcome is how an Await ended.
type outcome struct {
	held *claim.Held
	err  error
}

// await awaits beside the test; the texts it tells come through told.
func await(ctx context.Context, c claim.Config, nudge <-chan struct{}) (told <-chan messages.Awaited, ended <-chan outcome) {
	texts := make(chan messages.Awaited, 100) // more than any test causes
	end := make(chan outcome, 1)
	go func() {
		held, err := claim.Await(ctx, c, nudge, func(a messages.Awaited) { texts <- a })
		end <- outcome{held, err}
	}()
	return texts, end
}

func TestAwaitAsksOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpace(t)
		first := s.acquire(s.process())
		s.servers.say(first.Claim().Ledger, messages.Live)
		told, ended := await(t.Context(), s.process(), nil)
		heard := <-told
		if heard.Reason != messages.ClaimLivePeer || heard.Holder != first.Claim() || heard.Next == "" || heard.Since.IsZero() ||
			!has(heard.Text, "host-a", "server n1 says so") {
			t.Errorf("told %+v", heard)
		}
		time.Sleep(3500 * time.Millisecond) // of the bubble's time
		synctest.Wait()
		if asked := s.servers.questions(); asked != 2*4 {
			t.Errorf("%d questions in 3.5 s", asked)
		}
		if len(told) != 0 {
			t.Error("told again what has not changed")
		}
		s.servers.say(first.Claim().Ledger, messages.Unknown)
		heard = <-told
		if heard.Reason != messages.ClaimUnknown || !has(heard.Next, "--server-lost") {
			t.Errorf("told %+v", heard)
		}
		s.died(first)
		began := time.Now()
		if end := <-ended; end.err != nil || end.held.Claim().Generation != 2 {
			t.Errorf("ended with %+v", end)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestAwaitIsNudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpace(t)
		first := s.acquire(s.process())
		s.servers.say(first.Claim().Ledger, messages.Live)
		nudge := make(chan struct{})
		told, ended := await(t.Context(), s.process(), nudge)
		<-told
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		nudge <- struct{}{}
		if end := <-ended; end.err != nil || time.Since(began) != 0 {
			t.Errorf("ended with %v after %v", end.err, time.Since(began))
		}
	})
}

func TestAwaitOutlastsABrokerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpace(t)
		line := &counted{Backend: s.backend, away: true}
		told, ended := await(t.Context(), s.over(line), nil)
		if heard := <-told; heard.Reason != messages.BrokerAway || heard.Text == "" {
			t.Errorf("told %+v", heard)
		}
		line.setAway(false)
		if end := <-ended; end.err != nil {
			t.Error(end.err)
		}
	})
}

func TestAwaitEndsWhereWaitingIsInVain(t *testing.T) {
	s := newSpace(t)
	s.backend.Mark("plane")
	_, err := claim.Await(t.Context(), s.process(), nil, nil)
	s.want("await", err, messages.ClaimCorrupt)
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	s := newSpace(t)
	s.acquire(s.process())
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := await(ctx, s.process(), nil)
	select {
	case <-told:
	case <-time.After(longEnough):
		t.Fatal("nothing is waited for")
	}
	cancel()
	select {
	case end := <-ended:
		if !errors.Is(end.err, context.Canceled) || end.held != nil {
			t.Errorf("ended with %+v", end)
		}
	case <-time.After(longEnough):
		t.Fatal("it goes on waiting")
	}
}
