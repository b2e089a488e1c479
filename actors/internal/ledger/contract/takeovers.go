package contract

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

func takeoverEnds(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	for _, id := range []string{"a", "b"} {
		must(s.MintDescendant(ctx, s.mint(p, id, handle)))(t)
	}
	if err := s.RevokeCredential(ctx, ledger.RevokeCredential{UID: p.uid, ID: "a"}); err != nil {
		t.Fatal(err)
	}
	holder, id := s.holder(t, ctx), names.NewUID()
	done := must(holder.Takeover(ctx, takeoverOf(p, id)))(t)
	if done.Step != messages.StepDone || done.Outcome.Epoch != 2 || done.Outcome.Revoked != 2 || done.By != "test" || !done.Ended.Equal(s.now()) {
		t.Errorf("the operation is %+v", done)
	}
	head := s.head(t, ctx, p)
	if head.State != messages.HeadActive || head.Epoch != 2 || head.Generation != 2 || head.UID != p.uid || head.Root != (messages.Root{}) ||
		head.Operation != (messages.OperationRef{}) {
		t.Errorf("the head is %+v", head)
	}
	for id, state := range s.states(t, ctx, p) {
		if state != ledger.CredentialRevoked {
			t.Errorf("%s is %s", id, state)
		}
	}
	_, err := s.MintDescendant(ctx, s.mint(p, "late"))
	want(t, err, messages.CredentialGone)
	next := s.rooted(t, ctx, p)
	if next.root == p.root {
		t.Error("the next epoch has the old root")
	}
	must(s.MintDescendant(ctx, s.mint(next, "c")))(t)
	// The same again is the same, whatever has happened since.
	before := s.revision(t, ctx, ledger.HeadKey(p.Principal))
	if again := must(holder.Takeover(ctx, takeoverOf(p, id)))(t); !reflect.DeepEqual(again, done) {
		t.Errorf("it was %+v and is %+v", done, again)
	}
	if s.states(t, ctx, p)["c"] != ledger.CredentialActive || s.revision(t, ctx, ledger.HeadKey(p.Principal)) != before {
		t.Error("it was done twice")
	}
	if again := must(s.Operation(ctx, messages.ReadOperation{ID: id}))(t); !reflect.DeepEqual(again, done) {
		t.Errorf("it is read as %+v", again)
	}
}

func oneID(t *testing.T, ctx context.Context, s *bench) {
	p, q := s.born(t, ctx, "p"), s.born(t, ctx, "q")
	holder, id := s.holder(t, ctx), names.NewUID()
	_, err := holder.Operation(ctx, id)
	want(t, err, messages.OperationNotFound)
	_, err = s.Operation(ctx, messages.ReadOperation{ID: id})
	want(t, err, messages.OperationNotFound)
	_, err = holder.Advance(ctx, messages.Operation{ID: id}, messages.StepRevoked)
	want(t, err, messages.OperationNotFound)
	if err := holder.begin(ctx, takeoverOf(p, id)); err != nil {
		t.Fatal(err)
	}
	// Begun: whoever begins it again finds it as it is.
	op, step, err := holder.BeginTakeover(ctx, takeoverOf(p, id))
	if err != nil || !step.Empty() || op.Step != messages.StepBegun || op.UID != p.uid {
		t.Errorf("again: %+v, %+v, %v", op, step, err)
	}
	want(t, holder.begin(ctx, takeoverOf(q, id)), messages.OperationConflict)
	other := takeoverOf(p, id)
	other.UID = q.uid
	want(t, holder.begin(ctx, other), messages.OperationConflict)
	_, err = holder.CommitRetirement(ctx, op, nil)
	want(t, err, messages.OperationConflict)
	for _, bad := range []messages.BeginTakeover{
		takeoverOf(p, "short"), takeoverOf(p, ledger.OperationOf(q.uid)), {ID: names.NewUID(), Principal: p.Principal, UID: p.uid},
		{ID: names.NewUID(), Principal: p.Principal, UID: "x", By: "test"}, {ID: names.NewUID(), UID: p.uid, By: "test"},
	} {
		want(t, holder.begin(ctx, bad), messages.Malformed)
	}
	if owed := must(s.Owed(ctx))(t); len(owed) != 1 || owed[0].ID != id {
		t.Errorf("owed are %+v", owed)
	}
}

func oneTakeover(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	holder := s.holder(t, ctx)
	first, second := names.NewUID(), names.NewUID()
	if err := holder.begin(ctx, takeoverOf(p, first)); err != nil {
		t.Fatal(err)
	}
	want(t, holder.begin(ctx, takeoverOf(p, second)), messages.GateShut)
	_, err := s.Enrol(ctx, messages.Enrol{Principal: p.Principal, UID: p.uid})
	want(t, err, messages.GateShut)
	must(holder.Run(ctx, first))(t)
	if op := must(holder.Takeover(ctx, takeoverOf(p, second)))(t); op.Outcome.Epoch != 3 {
		t.Errorf("the second began epoch %d", op.Outcome.Epoch)
	}
	want(t, holder.begin(ctx, takeoverOf(living{Principal: p.Principal, uid: names.NewUID()}, names.NewUID())), messages.IncarnationEnded)
	want(t, holder.begin(ctx, takeoverOf(living{Principal: principal("nobody"), uid: p.uid}, names.NewUID())), messages.IncarnationEnded)
}

func stepsInOrder(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	holder, id := s.holder(t, ctx), names.NewUID()
	shut := must(holder.Land(ctx, holder.Lane, func(ctx context.Context) (ledger.Step, error) {
		_, step, err := holder.BeginTakeover(ctx, takeoverOf(p, id))
		return step, err
	}))(t)
	op := must(holder.Operation(ctx, id))(t)
	for _, to := range []messages.OperationStep{messages.StepEvicted, messages.StepDrained, messages.StepDone, messages.StepSuperseded} {
		_, err := holder.Advance(ctx, op, to)
		want(t, err, messages.InternalFault)
	}
	_, err := holder.CommitTakeover(ctx, op)
	want(t, err, messages.InternalFault)
	if err := holder.Next(ctx, op); err != nil {
		t.Fatal(err)
	}
	op = must(holder.Operation(ctx, id))(t)
	if op.Step != messages.StepRevoked {
		t.Fatalf("it is %+v", op)
	}
	_, err = holder.Advance(ctx, op, messages.StepEvicted) // without its proof
	want(t, err, messages.InternalFault)
	for _, to := range []messages.OperationStep{messages.StepBegun, messages.StepRevoked} {
		if step, err := holder.Advance(ctx, op, to); err != nil || !step.Empty() {
			t.Errorf("%s again: %+v, %v", to, step, err)
		}
	}
	frozen := must(holder.Frozen(ctx, op))(t)
	if key := ledger.HeadKey(p.Principal); frozen.Key != key || frozen.Revision != shut || frozen.Revision != s.revision(t, ctx, key) {
		t.Errorf("it was frozen at %+v", frozen)
	}
	op = must(holder.Run(ctx, id))(t)
	if !slices.Equal(op.Outcome.Servers, []string{"n"}) || op.Outcome.Eviction != messages.EvictionSwept {
		t.Errorf("it proved %+v", op.Outcome)
	}
}
