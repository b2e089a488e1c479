package ledger_test

import (
	"context"
	"slices"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// TestInvariantsSeeWhatOperationsCannotLeave breaks a ledger with a takeover under
// way, a retirement that is done and descendants, in each way it could break.
func TestInvariantsSeeWhatOperationsCannotLeave(t *testing.T) {
	type scene struct {
		*world
		taken, ended string // operations: of p, under way; of q, done
		over         string // q's incarnation
	}
	set := func(t *testing.T) *scene {
		s := &scene{world: freshWorld(t), taken: names.NewUID()}
		s.put("q", "")
		s.over = s.authority("q").Grant.UID
		if _, err := s.steady().Enrol(t.Context(), messages.Enrol{Principal: principal("q"), UID: s.over}); err != nil {
			t.Fatal(err)
		}
		s.ended = ledger.OperationOf(s.over)
		holder := s.holder(s.backend)
		mint := func(actor, uid string) {
			if _, err := s.steady().MintDescendant(t.Context(), ledger.MintDescendant{Principal: principal(actor), UID: uid, ID: "c",
				Root: s.authority(actor).Head.Root.ID, Handles: []ledger.Handle{{Issuer: "k", ID: "h"}}, Expires: s.clock.AddDate(0, 0, 1)}); err != nil {
				t.Fatal(err)
			}
		}
		mint("q", s.over)
		if _, err := holder.Retire(t.Context(), s.over); err != nil {
			t.Fatal(err)
		}
		s.put("p", "")
		s.enrol()
		mint("p", s.uid)
		if err := holder.Begin(t.Context(), func(ctx context.Context) (messages.Operation, ledger.Step, error) {
			return holder.BeginTakeover(ctx, messages.BeginTakeover{ID: s.taken, Principal: principal("p"), UID: s.uid, By: "x"})
		}); err != nil {
			t.Fatal(err)
		}
		s.holds()
		return s
	}
	head := func(s *scene, actor string, change func(*messages.Head)) {
		h := s.authority(actor).Head
		change(&h)
		value, err := ledger.EncodeHead(h)
		s.overwrite(ledger.HeadKey(h.Principal), value, err)
	}
	operation := func(s *scene, id string, change func(*messages.Operation)) {
		row, _, _ := s.backend.Get(s.Context(), ledger.OperationKey(id))
		op, err := ledger.DecodeOperation(row)
		if err != nil {
			s.Fatal(err)
		}
		change(&op)
		value, err := ledger.EncodeOperation(op, uid)
		s.overwrite(row.Key, value, err)
	}
	owed := func(s *scene, ops ...string) {
		slices.Sort(ops)
		value, err := ledger.EncodeOwed(messages.Owed{Ops: ops}, uid)
		s.overwrite(ledger.OwedKey, value, err)
	}
	active := func(s *scene, incarnation string) {
		row, _, _ := s.backend.Get(s.Context(), ledger.CredentialKey(incarnation, "c"))
		c, err := ledger.DecodeCredential(row)
		if err != nil {
			s.Fatal(err)
		}
		c.State = ledger.CredentialActive
		value, err := ledger.EncodeCredential(c)
		s.overwrite(row.Key, value, err)
	}
	for name, spoil := range map[string]func(*scene){
		"a gate that no operation holds": func(s *scene) { head(s, "p", func(h *messages.Head) { h.Operation.ID = other }) },
		"an operation without its gate": func(s *scene) {
			head(s, "p", func(h *messages.Head) { h.State, h.Operation = messages.HeadActive, messages.OperationRef{} })
		},
		"one under way that is not owed": func(s *scene) { owed(s) },
		"one that is done and owed":      func(s *scene) { owed(s, s.taken, s.ended) },
		"one that is owed and unknown":   func(s *scene) { owed(s, s.taken, other) },
		"one superseded by none": func(s *scene) {
			owed(s)
			operation(s, s.taken, func(op *messages.Operation) { op.Step, op.Ended = messages.StepSuperseded, s.clock })
			head(s, "p", func(h *messages.Head) { h.State, h.Operation = messages.HeadActive, messages.OperationRef{} })
		},
		"a family that outlives its revocation": func(s *scene) {
			operation(s, s.taken, func(op *messages.Operation) { op.Step = messages.StepRevoked })
		},
		"a credential that outlives its incarnation": func(s *scene) { active(s, s.over) },
		"an incarnation that lives again": func(s *scene) {
			head(s, "q", func(h *messages.Head) { h.State = messages.HeadActive })
		},
		"a grant that outlives its incarnation": func(s *scene) {
			g := s.authority("q").Grant
			g.State = messages.GrantLive
			value, err := ledger.EncodeGrant(g, other)
			s.overwrite(ledger.GrantKey(g.Principal), value, err)
		},
		"an end of which nobody knows where": func(s *scene) {
			head(s, "p", func(h *messages.Head) { h.State, h.Operation = messages.HeadRetired, messages.OperationRef{} })
		},
		"a frontier of another operation": func(s *scene) {
			value, err := ledger.EncodeFrontier(ledger.Frontier{UID: s.over, Operation: s.taken})
			s.overwrite(ledger.FrontierKey(s.over), value, err)
		},
		"an epoch that was lost": func(s *scene) {
			owed(s)
			operation(s, s.taken, func(op *messages.Operation) {
				op.Step, op.Ended, op.Outcome.Eviction, op.Outcome.Epoch = messages.StepDone, s.clock, messages.EvictionSwept, 2
			})
			head(s, "p", func(h *messages.Head) { h.State, h.Operation = messages.HeadActive, messages.OperationRef{} })
		},
		"one revoked of whom nobody asks the end": func(s *scene) {
			s.revoke()
			value, err := ledger.EncodeAsked(ledger.Asking{Instance: "i"}, other)
			s.overwrite(ledger.AskedKey("i"), value, err)
		},
		"a credential of another's": func(s *scene) {
			value, err := ledger.EncodeCredential(ledger.Credential{ID: "d", Holder: principal("q"), UID: s.uid, Chain: []string{"root"}, State: ledger.CredentialActive, Expires: s.clock})
			s.overwrite(ledger.CredentialKey(s.uid, "d"), value, err)
		},
		"a credential without its lineage": func(s *scene) {
			value, err := ledger.EncodeCredential(ledger.Credential{ID: "d", Holder: principal("p"), UID: s.uid, Chain: []string{"root", "handle.k.h"}, State: ledger.CredentialActive, Expires: s.clock})
			s.overwrite(ledger.CredentialKey(s.uid, "d"), value, err)
		},
		"a lineage without its credential": func(s *scene) {
			l := ledger.Lineage{Handle: ledger.Handle{Issuer: "k", ID: "h"}, UID: s.uid, CredentialID: "d"}
			value, err := ledger.EncodeLineage(l)
			s.overwrite(ledger.LineageKey(l.Handle, l.UID, l.CredentialID), value, err)
		},
		"a session without its halves": func(s *scene) {
			value, err := ledger.EncodeSession(ledger.Session{ID: "s", Caller: principal("p"), UID: s.uid, Endpoint: "e", Instance: uid, Server: principal("q"), Expires: s.clock}, other)
			s.overwrite(ledger.SessionKey("s"), value, err)
		},
		"a half without its session": func(s *scene) {
			value, err := ledger.EncodeCredential(ledger.Credential{ID: "s-c", Holder: principal("p"), UID: s.uid, Chain: []string{"root", "session.s"}, State: ledger.CredentialActive, Expires: s.clock})
			s.overwrite(ledger.CredentialKey(s.uid, "s-c"), value, err)
		},
	} {
		s := set(t)
		spoil(s)
		if err := ledger.CheckInvariants(t.Context(), s.backend); err == nil {
			t.Errorf("%s: not seen", name)
		}
	}
}
