package contract

import (
	"context"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Barriers runs takeovers, retirements and what descends from roots over a backend.
// open gives a new and empty one.
func Barriers(t *testing.T, open func(t *testing.T) Subject) {
	cases := []struct {
		name string
		run  func(*testing.T, context.Context, *bench)
	}{
		{"a takeover ends what was issued", takeoverEnds}, {"one id is one operation", oneID},
		{"one takeover at a time", oneTakeover}, {"a retirement supersedes a takeover", supersede},
		{"a retirement of any generation", anyGeneration}, {"a retirement ends a life for good", retirementEnds},
		{"a retirement that is repeated", repeatedRetirement}, {"another's frontier", foreignFrontier},
		{"steps in their order", stepsInOrder}, {"what is asked for", asking}, {"what nobody has to end", nothingToEnd},
		{"minted", minted}, {"who may not mint", mintRefused}, {"a handle is revoked", handleRevoked},
		{"a session is redeemed once", redeemedOnce}, {"a session ends with its caller", sessionEnds},
		{"a family that cannot be read", garbledFamily}, {"more than one batch", largeFamily}, {"the roster", rosters},
		{"nothing is issued past a takeover", mintPausesForTakeover}, {"nothing is issued past a revoked handle", mintPausesForHandle},
		{"nothing is issued past a revocation", mintPausesForRevocation},
		{"no root outlives its takeover", exchangePausesForTakeover}, {"a session past a takeover", redemptionPauses},
		{"a gate shuts while others mint", beginAgainstMints}, {"a commit while others write", commitAgainstEdits},
		{"beginnings at once", beginningsAtOnce},
		{"a crowd ends together", endedTogether}, {"somebody poisoned in a crowd", poisonedAmongThem},
		{"a crowd for whom there is no room", fullRow}, {"some of a crowd give up", someGiveUp},
		{"a crowd whose answer is lost", endedUnheard}, {"a crowd ended by two processes", endedByTwo},
		{"a crowd: " + string(cutBefore), crowdCut(cutBefore)}, {"a crowd: " + string(cutAfter), crowdCut(cutAfter)},
		{"a crowd: " + string(cutAnswer), crowdCut(cutAnswer)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { within(t, patience, open, c.run) })
	}
}

// living is a principal with a root.
type living struct {
	messages.Principal
	uid, root string
}

func (s *bench) born(t *testing.T, ctx context.Context, actor string) living {
	t.Helper()
	made := must(s.PutGrant(ctx, person(actor)))(t)
	return s.rooted(t, ctx, living{Principal: made.Principal, uid: made.UID})
}

// rooted exchanges for whoever lives.
func (s *bench) rooted(t *testing.T, ctx context.Context, l living) living {
	t.Helper()
	l.root = must(s.Enrol(ctx, messages.Enrol{Principal: l.Principal, UID: l.uid}))(t).CredentialID
	return l
}

func (s *bench) mint(l living, id string, handles ...ledger.Handle) ledger.MintDescendant {
	return ledger.MintDescendant{Principal: l.Principal, UID: l.uid, Root: l.root, ID: id, Handles: handles, Expires: s.now().Add(time.Hour)}
}

func takeoverOf(l living, id string) messages.BeginTakeover {
	return messages.BeginTakeover{ID: id, Principal: l.Principal, UID: l.uid, By: "test"}
}

func (s *bench) head(t *testing.T, ctx context.Context, l living) messages.Head {
	t.Helper()
	return must(s.Authority(ctx, messages.ReadAuthority{Principal: l.Principal, Head: true}))(t).Head
}

// states are the states of an incarnation's credentials, by id.
func (s *bench) states(t *testing.T, ctx context.Context, l living) map[string]ledger.CredentialState {
	t.Helper()
	states := map[string]ledger.CredentialState{}
	for _, key := range must(s.store.List(ctx, ledger.CredentialsOf(l.uid)))(t) {
		row, _, err := s.store.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		c := must(ledger.DecodeCredential(row))(t)
		states[c.ID] = c.State
	}
	return states
}

func (s *bench) revision(t *testing.T, ctx context.Context, key string) uint64 {
	t.Helper()
	row, _, err := s.store.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return row.Revision
}

// begin lands the first step of a takeover.
func (h *Holder) begin(ctx context.Context, ask messages.BeginTakeover) error {
	return h.Begin(ctx, func(ctx context.Context) (messages.Operation, ledger.Step, error) { return h.BeginTakeover(ctx, ask) })
}

// beginRetirement lands the first step of a retirement.
func (h *Holder) beginRetirement(ctx context.Context, uid string) error {
	return h.Begin(ctx, func(ctx context.Context) (messages.Operation, ledger.Step, error) {
		return h.BeginRetirement(ctx, messages.AskRetirement{UID: uid, By: "test"})
	})
}

var handle = ledger.Handle{Issuer: "k1", ID: "h1"}
