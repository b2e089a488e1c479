package contract

import (
	"context"
	"reflect"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

func supersede(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	must(s.MintDescendant(ctx, s.mint(p, "a")))(t)
	holder, id := s.holder(t, ctx), names.NewUID()
	if err := holder.begin(ctx, takeoverOf(p, id)); err != nil {
		t.Fatal(err)
	}
	takeover := must(holder.Operation(ctx, id))(t)
	must(s.RevokeGrant(ctx, messages.RevokeGrant{Principal: p.Principal, By: "other"}))(t)
	if err := holder.beginRetirement(ctx, p.uid); err != nil {
		t.Fatal(err)
	}
	if op := must(holder.Operation(ctx, id))(t); op.Step != messages.StepSuperseded || op.Ended.IsZero() {
		t.Errorf("the takeover is %+v", op)
	}
	owed := must(s.Owed(ctx))(t)
	if len(owed) != 1 || owed[0].ID != ledger.OperationOf(p.uid) || owed[0].Principal != p.Principal {
		t.Errorf("owed are %+v", owed)
	}
	if head := s.head(t, ctx, p); head.State != messages.HeadRetiring || head.Operation.ID != owed[0].ID {
		t.Errorf("the head is %+v", head)
	}
	// Whoever still runs the takeover changes nothing.
	before := s.revision(t, ctx, ledger.OperationKey(id))
	_, err := holder.Advance(ctx, takeover, messages.StepRevoked)
	want(t, err, messages.IncarnationEnded)
	_, err = holder.CommitTakeover(ctx, takeover)
	want(t, err, messages.IncarnationEnded)
	_, err = holder.RevokeFamily(ctx, takeover, nil)
	want(t, err, messages.IncarnationEnded)
	_, err = holder.Frozen(ctx, takeover)
	want(t, err, messages.IncarnationEnded)
	if op := must(holder.Takeover(ctx, takeoverOf(p, id)))(t); op.Step != messages.StepSuperseded {
		t.Errorf("begun again it is %+v", op)
	}
	want(t, holder.begin(ctx, takeoverOf(p, names.NewUID())), messages.GateShut)
	must(holder.Retire(ctx, p.uid))(t)
	if s.revision(t, ctx, ledger.OperationKey(id)) != before {
		t.Error("the takeover was written again")
	}
}

// anyGeneration asks for a retirement before a takeover, and has it done after.
func anyGeneration(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	asked := must(s.AskRetirement(ctx, messages.AskRetirement{Principal: p.Principal, UID: p.uid, By: "test"}))(t)
	holder := s.holder(t, ctx)
	must(holder.Takeover(ctx, takeoverOf(p, names.NewUID())))(t)
	must(holder.Takeover(ctx, takeoverOf(p, names.NewUID())))(t)
	op := must(holder.Retire(ctx, p.uid))(t)
	if op.ID != asked.Operation || op.Step != messages.StepDone {
		t.Errorf("asked for %s, done is %+v", asked.Operation, op)
	}
	if head := s.head(t, ctx, p); head.Epoch != 3 || head.Generation != 3 || head.State != messages.HeadRetired {
		t.Errorf("the head is %+v", head)
	}
}

func retirementEnds(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	must(s.MintDescendant(ctx, s.mint(p, "a", handle)))(t)
	must(s.AskRetirement(ctx, messages.AskRetirement{Principal: p.Principal, By: "other"}))(t)
	holder := s.holder(t, ctx)
	if err := holder.beginRetirement(ctx, p.uid); err != nil {
		t.Fatal(err)
	}
	_, err := s.PutGrant(ctx, person("p"))
	want(t, err, messages.IncarnationStanding)
	want(t, holder.begin(ctx, takeoverOf(p, names.NewUID())), messages.GateShut)
	op := must(holder.Run(ctx, ledger.OperationOf(p.uid)))(t)
	if op.Step != messages.StepDone || op.Outcome.Frontiers["EVENTS"] != 7 || op.Outcome.Revoked != 1 || op.Outcome.Epoch != 0 {
		t.Errorf("the operation is %+v", op)
	}
	row, _, err := s.store.Get(ctx, ledger.FrontierKey(p.uid))
	if err != nil {
		t.Fatal(err)
	}
	if f := must(ledger.DecodeFrontier(row))(t); f.Operation != op.ID || !reflect.DeepEqual(f.Streams, op.Outcome.Frontiers) {
		t.Errorf("the frontier is %+v", f)
	}
	if head := s.head(t, ctx, p); head.State != messages.HeadRetired || head.Root.ID != "" || head.Operation.ID != "" {
		t.Errorf("the head is %+v", head)
	}
	if owed := must(s.Owed(ctx))(t); len(owed) != 0 {
		t.Errorf("owed are %+v", owed)
	}
	// Granted anew, he lives under another name.
	next := s.born(t, ctx, "p")
	if next.uid == p.uid || next.root == p.root {
		t.Errorf("he lives again as %+v", next)
	}
	want(t, s.enrol(ctx, "p", p.uid), messages.IncarnationEnded)
	want(t, holder.begin(ctx, takeoverOf(p, names.NewUID())), messages.IncarnationEnded)
	_, err = s.MintDescendant(ctx, s.mint(p, "z"))
	want(t, err, messages.IncarnationEnded)
}

func repeatedRetirement(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	must(s.RevokeGrant(ctx, messages.RevokeGrant{Principal: p.Principal, By: "test"}))(t)
	holder := s.holder(t, ctx)
	done := must(holder.Retire(ctx, p.uid))(t)
	next := s.born(t, ctx, "p")
	must(s.MintDescendant(ctx, s.mint(next, "a")))(t)
	before := s.head(t, ctx, next)
	op, step, err := holder.BeginRetirement(ctx, messages.AskRetirement{UID: p.uid})
	if err != nil || !step.Empty() || !reflect.DeepEqual(op, done) {
		t.Errorf("begun again: %+v, %+v, %v", op, step, err)
	}
	if step, err := holder.CommitRetirement(ctx, op, map[string]uint64{"EVENTS": 9}); err != nil || !step.Empty() {
		t.Errorf("committed again: %+v, %v", step, err)
	}
	asked := must(s.AskRetirement(ctx, messages.AskRetirement{Principal: p.Principal, UID: p.uid, By: "late"}))(t)
	if asked.Operation != done.ID {
		t.Errorf("asked again: %+v", asked)
	}
	if after := s.head(t, ctx, next); after != before || s.states(t, ctx, next)["a"] != ledger.CredentialActive {
		t.Errorf("his successor is %+v", after)
	}
	_, _, err = holder.BeginRetirement(ctx, messages.AskRetirement{UID: names.NewUID(), By: "test"})
	want(t, err, messages.IncarnationEnded)
	_, _, err = holder.BeginRetirement(ctx, messages.AskRetirement{Principal: principal("q"), UID: p.uid, By: "test"})
	want(t, err, messages.OperationConflict)
}

func foreignFrontier(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	must(s.RevokeGrant(ctx, messages.RevokeGrant{Principal: p.Principal, By: "test"}))(t)
	holder := s.holder(t, ctx)
	value := must(ledger.EncodeFrontier(ledger.Frontier{UID: p.uid, Operation: names.NewUID()}))(t)
	foreign := ledger.Create(ledger.FrontierKey(p.uid), value)
	must(s.store.Apply(ctx, ledger.Batch{Writes: []ledger.Write{foreign}}))(t)
	_, err := holder.Retire(ctx, p.uid)
	want(t, err, messages.OperationConflict)
	if head := s.head(t, ctx, p); head.State != messages.HeadRetiring {
		t.Errorf("the head is %+v", head)
	}
	// By hand made this operation's own: that cannot be either, since it goes with the commit.
	row, _, _ := s.store.Get(ctx, foreign.Key)
	value = must(ledger.EncodeFrontier(ledger.Frontier{UID: p.uid, Operation: ledger.OperationOf(p.uid)}))(t)
	must(s.store.Apply(ctx, ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, value)}}))(t)
	_, err = holder.Retire(ctx, p.uid)
	want(t, err, messages.RowCorrupt)
	if err := ledger.CheckInvariants(ctx, s.store); err == nil {
		t.Error("the invariants do not see it")
	}
	s.broken = true
}
