package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// paused is a backend on which something happens before a write is sent, as if the
// process had stopped between its reads and its write.
type paused struct {
	ledger.Backend
	before []func() // one for each write, as far as they go
}

func (p *paused) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	if len(p.before) > 0 {
		meanwhile := p.before[0]
		p.before = p.before[1:]
		meanwhile()
	}
	return p.Backend.Send(ctx, b)
}

// pausing is a writer that pauses so.
func (s *bench) pausing(before ...func()) *ledger.Writer {
	store := ledger.NewStore(&paused{Backend: s.backend, before: before}, ledger.DefaultPatience())
	return ledger.NewWriter(store, ledger.Options{Instance: names.NewUID(), Now: s.now})
}

// takenOver is a whole takeover that happens meanwhile.
func (s *bench) takenOver(t *testing.T, ctx context.Context, l living) func() {
	return func() {
		t.Helper()
		must(s.holder(t, ctx).Takeover(ctx, takeoverOf(l, names.NewUID())))(t)
	}
}

func (s *bench) nothingIssued(t *testing.T, ctx context.Context, l living) {
	t.Helper()
	for id, state := range s.states(t, ctx, l) {
		if state == ledger.CredentialActive {
			t.Errorf("%s is active", id)
		}
	}
}

func mintPausesForTakeover(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	_, err := s.pausing(s.takenOver(t, ctx, p)).MintDescendant(ctx, s.mint(p, "a", handle))
	want(t, err, messages.CredentialGone)
	p = s.rooted(t, ctx, p)
	// Also when the next epoch has a root by then: it is not the one that was shown.
	_, err = s.pausing(func() { s.takenOver(t, ctx, p)(); s.rooted(t, ctx, p) }).MintDescendant(ctx, s.mint(p, "b"))
	want(t, err, messages.CredentialGone)
	if keys := must(s.store.List(ctx, "bysrc.>"))(t); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}
	s.nothingIssued(t, ctx, p)
}

func mintPausesForHandle(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	fine := ledger.Handle{Issuer: "k1", ID: "h0"}
	must(s.MintDescendant(ctx, s.mint(p, "a", fine, handle)))(t)
	gate := s.revision(t, ctx, ledger.SourceKey(fine))
	_, err := s.pausing(func() {
		if err := s.holder(t, ctx).RevokeHandle(ctx, handle); err != nil {
			t.Error(err)
		}
	}).MintDescendant(ctx, s.mint(p, "b", fine, handle))
	want(t, err, messages.HandleFrozen)
	s.nothingIssued(t, ctx, p)
	if s.revision(t, ctx, ledger.SourceKey(fine)) != gate {
		t.Error("the one gate was touched, and the other refused")
	}
}

func mintPausesForRevocation(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	revoke := func() {
		must(s.RevokeGrant(ctx, messages.RevokeGrant{Principal: p.Principal, By: "test"}))(t)
	}
	_, err := s.pausing(revoke).MintDescendant(ctx, s.mint(p, "a"))
	want(t, err, messages.NotGranted)
	s.nothingIssued(t, ctx, p)
	// A root is neither renewed nor made anew after it.
	for actor, prepare := range map[string]func(living){
		"old":   func(living) { s.pass(60 * 24 * time.Hour) },
		"empty": func(l living) { s.takenOver(t, ctx, l)() },
	} {
		p = s.born(t, ctx, actor)
		prepare(p)
		before := s.head(t, ctx, p).Root
		_, err = s.pausing(revoke).Enrol(ctx, messages.Enrol{Principal: p.Principal, UID: p.uid})
		want(t, err, messages.NotGranted)
		if root := s.head(t, ctx, p).Root; root != before {
			t.Errorf("%s: the root was %+v and is %+v", actor, before, root)
		}
	}
}

// exchangePausesForTakeover renews a root while a takeover ends it.
func exchangePausesForTakeover(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	s.pass(60 * 24 * time.Hour)
	got := must(s.pausing(s.takenOver(t, ctx, p)).Enrol(ctx, messages.Enrol{Principal: p.Principal, UID: p.uid}))(t)
	head := s.head(t, ctx, p)
	if got.CredentialID == p.root || head.Root.ID != got.CredentialID || head.Epoch != 2 {
		t.Errorf("answered %+v, and the head is %+v", got, head)
	}
}

func redemptionPauses(t *testing.T, ctx context.Context, s *bench) {
	p, at := s.born(t, ctx, "p"), s.served(t, ctx, "svc")
	_, err := s.pausing(s.takenOver(t, ctx, p)).RedeemSession(ctx, s.session(p, "s1", at))
	want(t, err, messages.CredentialGone)
	p = s.rooted(t, ctx, p)
	registrar := ledger.NewRegistrar(s.store, func(context.Context, []messages.Principal) error { return nil }, nil)
	_, err = s.pausing(func() {
		must(registrar.Register(ctx, messages.RegisterInstance{Endpoint: at.Endpoint, Instance: at.Name, Principal: at.Principal}))(t)
	}).RedeemSession(ctx, s.session(p, "s1", at))
	want(t, err, messages.InstanceSuperseded)
	s.nothingIssued(t, ctx, p)
	if keys := must(s.store.List(ctx, "session.>"))(t); len(keys) != 0 {
		t.Errorf("it counts as redeemed: %v", keys)
	}
}

// lagging is a lane on which something happens before each step, as far as it goes.
type lagging struct {
	ledger.Lane
	before []func()
	lost   int
}

func (l *lagging) Write(ctx context.Context, step ledger.Step) (uint64, error) {
	if len(l.before) > 0 {
		meanwhile := l.before[0]
		l.before = l.before[1:]
		meanwhile()
	}
	last, err := l.Lane.Write(ctx, step)
	if errors.Is(err, ledger.ErrLost) {
		l.lost++
	}
	return last, err
}

// beginAgainstMints has a mint, or a renewal, between the read and the write of a
// beginning, again and again: the gate is shut all the same.
func beginAgainstMints(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	holder := s.holder(t, ctx)
	lane := &lagging{Lane: holder.Lane}
	const times = 8
	for i := range times {
		lane.before = append(lane.before, func() {
			if i%2 == 0 {
				must(s.MintDescendant(ctx, s.mint(p, fmt.Sprintf("c%d", i), handle)))(t)
				return
			}
			s.pass(50 * 24 * time.Hour)
			s.rooted(t, ctx, p)
		})
	}
	holder.Lane = lane
	id := names.NewUID()
	if err := holder.begin(ctx, takeoverOf(p, id)); err != nil {
		t.Fatal(err)
	}
	if lane.lost != times {
		t.Errorf("it lost %d times", lane.lost)
	}
	if done := must(holder.Run(ctx, id))(t); done.Outcome.Revoked != times/2 {
		t.Errorf("it is %+v", done)
	}
	s.nothingIssued(t, ctx, p)
}

// commitAgainstEdits has other writes between the read and the write of each commit.
func commitAgainstEdits(t *testing.T, ctx context.Context, s *bench) {
	// A grant that is edited while its incarnation is retired ends all the same.
	p := s.born(t, ctx, "p")
	holder := s.holder(t, ctx)
	lane := &lagging{Lane: holder.Lane}
	holder.Lane = lane
	if err := holder.beginRetirement(ctx, p.uid); err != nil {
		t.Fatal(err)
	}
	op := must(holder.Operation(ctx, ledger.OperationOf(p.uid)))(t)
	for op.Step != messages.StepDrained {
		if err := holder.Next(ctx, op); err != nil {
			t.Fatal(err)
		}
		op = must(holder.Operation(ctx, op.ID))(t)
	}
	lane.before = []func(){func() {
		must(s.EditGrant(ctx, messages.EditGrant{Principal: p.Principal, Revision: 1, By: "editor", Allowance: person("p").Allowance}))(t)
	}}
	must(holder.Run(ctx, op.ID))(t)
	grant := must(s.Authority(ctx, messages.ReadAuthority{Principal: p.Principal}))(t).Grant
	if lane.lost != 1 || grant.State != messages.GrantRevoked || grant.Revision != 3 || grant.By != "test" {
		t.Errorf("lost %d times, and the grant is %+v", lane.lost, grant)
	}
	// A takeover that a retirement overtakes at its commit is superseded.
	q := s.born(t, ctx, "q")
	if err := holder.begin(ctx, takeoverOf(q, names.NewUID())); err != nil {
		t.Fatal(err)
	}
	op = must(s.Owed(ctx))(t)[0]
	for op.Step != messages.StepEvicted {
		if err := holder.Next(ctx, op); err != nil {
			t.Fatal(err)
		}
		op = must(holder.Operation(ctx, op.ID))(t)
	}
	lane.before = []func(){func() {
		lane.before = nil
		if err := holder.beginRetirement(ctx, q.uid); err != nil {
			t.Error(err)
		}
	}}
	want(t, holder.Next(ctx, op), messages.IncarnationEnded)
	if head := s.head(t, ctx, q); head.State != messages.HeadRetiring || head.Epoch != 1 {
		t.Errorf("the head is %+v", head)
	}
	// A credential that is revoked while its family is costs one more try.
	r := s.born(t, ctx, "r")
	must(s.MintDescendant(ctx, s.mint(r, "a")))(t)
	lane.lost = 0
	lane.before = []func(){nothing, func() {
		if err := s.RevokeCredential(ctx, ledger.RevokeCredential{UID: r.uid, ID: "a"}); err != nil {
			t.Error(err)
		}
	}}
	if done := must(holder.Takeover(ctx, takeoverOf(r, names.NewUID())))(t); lane.lost != 1 || done.Outcome.Epoch != 2 {
		t.Errorf("lost %d times, and it is %+v", lane.lost, done)
	}
}

func nothing() {}

// beginningsAtOnce begins one operation from many sides, and others beside it.
func beginningsAtOnce(t *testing.T, ctx context.Context, s *bench) {
	p, q := s.born(t, ctx, "p"), s.born(t, ctx, "q")
	holder, id := s.holder(t, ctx), names.NewUID()
	for _, err := range atOnce(8, func(i int) error {
		if i%2 == 0 {
			return holder.begin(ctx, takeoverOf(p, id))
		}
		return holder.beginRetirement(ctx, q.uid)
	}) {
		want(t, err, nil)
	}
	if owed := must(s.Owed(ctx))(t); len(owed) != 2 {
		t.Errorf("owed are %+v", owed)
	}
	// A takeover and a retirement of one incarnation: the retirement has it in the end.
	var racing sync.WaitGroup
	r := s.born(t, ctx, "r")
	racing.Go(func() {
		err := holder.begin(ctx, takeoverOf(r, names.NewUID()))
		if err != nil && !errors.Is(err, messages.GateShut) {
			t.Errorf("the takeover: %v", err)
		}
	})
	racing.Go(func() {
		if err := holder.beginRetirement(ctx, r.uid); err != nil {
			t.Errorf("the retirement: %v", err)
		}
	})
	racing.Wait()
	if head := s.head(t, ctx, r); head.State != messages.HeadRetiring {
		t.Errorf("the head is %+v", head)
	}
	for _, op := range must(s.Owed(ctx))(t) {
		must(holder.Run(ctx, op.ID))(t)
	}
}
