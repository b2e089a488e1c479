package claim_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

func TestTheFirstClaimAsksNobody(t *testing.T) {
	s := newSpace(t)
	c := s.process()
	held := s.acquire(c)
	got := held.Claim()
	if got.Generation != 1 || got.State != messages.ClaimHeld || got.Ledger != c.Ledger || got.Records != c.Records || got.Host != "host-a" {
		t.Errorf("the claim is %+v", got)
	}
	if s.servers.questions() != 0 || held.Former() != (messages.Claim{}) {
		t.Errorf("asked %d times about %+v", s.servers.questions(), held.Former())
	}
	if held.Pin() != (ledger.Pin{Key: ledger.PlaneKey, Revision: s.plane().Revision}) {
		t.Errorf("the pin is %+v", held.Pin())
	}
	if err := held.Guard(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAReleasedClaimIsTakenWithoutAsking(t *testing.T) {
	s := newSpace(t)
	first := s.acquire(s.process())
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.acquire(s.process()).Claim(); got.Generation != 2 || s.servers.questions() != 0 {
		t.Errorf("generation %d after %d questions", got.Generation, s.servers.questions())
	}
}

func TestAHeldClaim(t *testing.T) {
	const live, gone, unknown = messages.Live, messages.Gone, messages.Unknown
	won := messages.Error{}
	for _, c := range []struct {
		name            string
		ledger, records messages.Verdict
		lost            []string
		want            messages.Error
	}{
		{name: "both live", ledger: live, records: live, want: messages.ClaimLivePeer},
		{name: "one live", ledger: live, records: gone, want: messages.ClaimLivePeer},
		{name: "the other live", ledger: gone, records: live, want: messages.ClaimLivePeer},
		{name: "live beats unknown", ledger: unknown, records: live, want: messages.ClaimLivePeer},
		{name: "live beats unknown, the other way round", ledger: live, records: unknown, want: messages.ClaimLivePeer},
		{name: "one unknown", ledger: gone, records: unknown, want: messages.ClaimUnknown},
		{name: "both unknown", ledger: unknown, records: unknown, want: messages.ClaimUnknown},
		{name: "no verdict at all", ledger: "", records: gone, want: messages.ClaimUnknown},
		{name: "a verdict that is none", ledger: "maybe", records: gone, want: messages.ClaimUnknown},
		{name: "both gone", ledger: gone, records: gone, want: won},
		{name: "unknown on a server that is lost", ledger: unknown, records: unknown, lost: []string{"n0", "n1"}, want: won},
		{name: "unknown while another server is lost", ledger: unknown, records: unknown, lost: []string{"n0"}, want: messages.ClaimUnknown},
		{name: "live on a server that is called lost", ledger: live, records: unknown, lost: []string{"n1"}, want: messages.ClaimLivePeer},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSpace(t)
			former := s.acquire(s.process())
			before := s.plane()
			s.servers.say(former.Claim().Ledger, c.ledger)
			s.servers.say(former.Claim().Records, c.records)
			next := s.process()
			next.ServersLost = c.lost
			held, err := claim.Acquire(t.Context(), next)
			if s.servers.questions() != 2 {
				t.Errorf("%d questions were asked", s.servers.questions())
			}
			if c.want != won {
				s.want("acquire", err, c.want)
				if now := s.plane(); !bytes.Equal(now.Value, before.Value) || now.Revision != before.Revision {
					t.Error("a refused claim wrote")
				}
				if told := claim.Told(err); !strings.Contains(told, "claimed on "+former.Claim().Host+" at 20") {
					t.Errorf("an operator is told %q", told)
				}
				return
			}
			if err != nil || held.Claim().Generation != 2 || held.Former() != former.Claim() {
				t.Fatalf("won %+v, %v", held, err)
			}
			s.want("the guard of the former holder", former.Guard(t.Context()), messages.ClaimLost)
		})
	}
}

func TestOnlyWhatPassesIsRetryable(t *testing.T) {
	for _, e := range []messages.Error{messages.ClaimCorrupt, messages.ClaimLivePeer, messages.ClaimConcurrent, messages.ClaimFenced,
		messages.ClaimReleased, messages.ClaimLost} {
		if e.Retryable || e.Code != messages.FailedPrecondition {
			t.Errorf("%s: %s, retryable %v", e.Reason, e.Code, e.Retryable)
		}
	}
	for _, e := range []messages.Error{messages.ClaimUnknown, messages.ReleaseUnreachable} {
		if !e.Retryable || e.Code != messages.Unavailable {
			t.Errorf("%s: %s, retryable %v", e.Reason, e.Code, e.Retryable)
		}
	}
}

func TestEveryRefusalNamesTheNextCommandAndChasesNobody(t *testing.T) {
	for _, e := range []messages.Error{messages.ClaimCorrupt, messages.ClaimLivePeer, messages.ClaimUnknown, messages.ClaimConcurrent,
		messages.ClaimFenced, messages.ClaimReleased, messages.ClaimLost, messages.ReleaseUnreachable} {
		if e.Next == "" || e.Operator == "" {
			t.Errorf("%s: next %q, operator %q", e.Reason, e.Next, e.Operator)
		}
		for _, chase := range []string{"stop the other", "kill", "end the other"} {
			if strings.Contains(e.Operator+e.Message, chase) {
				t.Errorf("%s sends somebody after a process that may be gone", e.Reason)
			}
		}
	}
}

func TestARowThatIsNoClaimIsNeverWrittenOver(t *testing.T) {
	for what, spoil := range map[string]func(*space){
		"garbage":          func(s *space) { s.put([]byte("garbage")) },
		"a marker":         func(s *space) { s.backend.Mark(ledger.PlaneKey) },
		"an unknown state": func(s *space) { s.put(bytes.Replace(s.plane().Value, []byte("held"), []byte("leased"), 1)) },
		"an extra field":   func(s *space) { s.put(bytes.Replace(s.plane().Value, []byte(`{"v":1`), []byte(`{"v":1,"x":0`), 1)) },
		"generation 0": func(s *space) {
			s.put(bytes.Replace(s.plane().Value, []byte(`"generation":1`), []byte(`"generation":0`), 1))
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSpace(t)
			former := s.acquire(s.process())
			spoil(s)
			_, err := claim.Acquire(t.Context(), s.process())
			s.want("acquire", err, messages.ClaimCorrupt)
			s.want("guard", former.Guard(t.Context()), messages.ClaimLost)
			s.want("release", former.Release(t.Context()), messages.ClaimLost)
			if s.servers.questions() != 0 {
				t.Error("somebody was asked")
			}
			if _, err := claim.Acquire(t.Context(), s.process()); !errors.Is(err, messages.ClaimCorrupt) {
				t.Errorf("it was written over: %v", err)
			}
		})
	}
}

func TestOneOfManyWins(t *testing.T) {
	s := newSpace(t)
	const many = 8
	configs := make([]claim.Config, many)
	for i := range configs {
		configs[i] = s.process()
		s.servers.say(configs[i].Ledger, messages.Live)
	}
	held, refused := make([]*claim.Held, many), make([]error, many)
	var claiming sync.WaitGroup
	for i := range configs {
		claiming.Go(func() { held[i], refused[i] = claim.Acquire(t.Context(), configs[i]) })
	}
	claiming.Wait()
	winners := 0
	for i, h := range held {
		switch {
		case h != nil:
			winners++
		case !errors.Is(refused[i], messages.ClaimLivePeer) && !errors.Is(refused[i], messages.ClaimConcurrent):
			t.Errorf("refused with %v", refused[i])
		}
	}
	if winners != 1 {
		t.Errorf("%d of %d won", winners, many)
	}
}

func TestWhoLosesTwiceHasLostToSomebody(t *testing.T) {
	s := newSpace(t)
	busy := &counted{Backend: s.backend}
	busy.before = func(ledger.Batch) error {
		rival := s.acquire(s.process())
		s.died(rival)
		return nil
	}
	_, err := claim.Acquire(t.Context(), s.over(busy))
	s.want("acquire", err, messages.ClaimConcurrent)
	if _, sends := busy.count(); sends != 2 {
		t.Errorf("it wrote %d times", sends)
	}
}

func TestALostAnswerIsRecognisedAsOwn(t *testing.T) {
	for _, former := range []string{"virgin", "released", "dead"} {
		t.Run(former, func(t *testing.T) {
			s := newSpace(t)
			if former != "virgin" {
				first := s.acquire(s.process())
				s.died(first)
				if former == "released" && first.Release(t.Context()) != nil {
					t.Fatal("the release failed")
				}
			}
			deaf := &counted{Backend: s.backend, after: once(func() error { return ledger.ErrUnknown })}
			held := s.acquire(s.over(deaf))
			if held.Pin().Revision != s.plane().Revision {
				t.Errorf("it took %d for its revision, which is %d", held.Pin().Revision, s.plane().Revision)
			}
			if err := held.Guard(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWhatLandedUnknownIsTakenBack is a caller that gave up while its claim was on
// the way: the next call of the same process finds it there.
func TestWhatLandedUnknownIsTakenBack(t *testing.T) {
	s := newSpace(t)
	ctx, giveUp := context.WithCancel(t.Context())
	deaf := &counted{Backend: s.backend, after: once(func() error { giveUp(); return ledger.ErrUnknown })}
	c := s.over(deaf)
	_, err := claim.Acquire(ctx, c)
	s.want("acquire", err, messages.OutcomeUnknown)
	if len(s.plane().Value) == 0 {
		t.Fatal("it did not land")
	}
	held := s.acquire(c)
	if held.Claim().Generation != 2 || s.servers.questions() != 0 {
		t.Errorf("generation %d after %d questions", held.Claim().Generation, s.servers.questions())
	}
}

func TestAProcessTakesItsOwnPlaneBackWithoutAsking(t *testing.T) {
	s := newSpace(t)
	c := s.process()
	first := s.acquire(c)
	first.Fence(errors.New("a scanner was lost"))
	again := s.process()
	again.Run = c.Run
	held := s.acquire(again)
	if s.servers.questions() != 0 || held.Former() != first.Claim() || held.Claim().Generation != 2 {
		t.Errorf("after %d questions it has %+v over %+v", s.servers.questions(), held.Claim(), held.Former())
	}
	// Another process that was started since knows nothing of it.
	_, err := claim.Acquire(t.Context(), s.process())
	s.want("another process", err, messages.ClaimUnknown)
}

func TestABrokerThatIsAway(t *testing.T) {
	s := newSpace(t)
	away := &counted{Backend: s.backend, away: true}
	if _, err := claim.Acquire(t.Context(), s.over(away)); !errors.Is(err, messages.BrokerAway) {
		t.Errorf("acquire: %v", err)
	}
}
