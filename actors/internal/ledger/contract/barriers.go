package contract

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
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
