package contract

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

func minted(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	above := ledger.Handle{Issuer: "k2", ID: "h0"}
	ask := s.mint(p, "c", above, handle, handle)
	ask.Endpoint = "svc_a"
	head, grant := s.revision(t, ctx, ledger.HeadKey(p.Principal)), s.revision(t, ctx, ledger.GrantKey(p.Principal))
	got := must(s.MintDescendant(ctx, ask))(t)
	if got.Holder != p.Principal || got.UID != p.uid || got.State != ledger.CredentialActive || got.Endpoint != "svc_a" ||
		!got.Expires.Equal(ask.Expires) || !slices.Equal(got.Chain, []string{"root", "handle.k2.h0", "handle.k1.h1"}) {
		t.Errorf("got %+v", got)
	}
	if s.revision(t, ctx, ledger.HeadKey(p.Principal)) == head || s.revision(t, ctx, ledger.GrantKey(p.Principal)) == grant {
		t.Error("a gate was not touched")
	}
	for _, h := range []ledger.Handle{above, handle} {
		row, _, err := s.store.Get(ctx, ledger.LineageKey(h, p.uid, "c"))
		if err != nil {
			t.Fatal(err)
		}
		must(ledger.DecodeLineage(row))(t)
	}
	// The same again is the same; anything else under its id is refused.
	before := s.revision(t, ctx, ledger.CredentialKey(p.uid, "c"))
	if again := must(s.MintDescendant(ctx, ask))(t); again.ID != got.ID || !again.Expires.Equal(got.Expires) {
		t.Errorf("again: %+v", again)
	}
	if s.revision(t, ctx, ledger.CredentialKey(p.uid, "c")) != before {
		t.Error("it was written twice")
	}
	longer, fewer := ask, ask
	longer.Expires = ask.Expires.Add(time.Second)
	fewer.Handles = []ledger.Handle{above}
	for _, other := range []ledger.MintDescendant{longer, fewer} {
		_, err := s.MintDescendant(ctx, other)
		want(t, err, messages.CredentialConflict)
	}
	// Ended, it is not minted again.
	gone := ledger.RevokeCredential{UID: p.uid, ID: "c"}
	for range 2 {
		if err := s.RevokeCredential(ctx, gone); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.MintDescendant(ctx, ask)
	want(t, err, messages.CredentialGone)
	want(t, s.RevokeCredential(ctx, ledger.RevokeCredential{UID: p.uid, ID: "never"}), messages.CredentialGone)
	want(t, s.RevokeCredential(ctx, ledger.RevokeCredential{UID: p.uid, ID: "a.b"}), messages.Malformed)
	// Whoever mints for the first time through a handle finds its gate made by another.
	q := s.born(t, ctx, "q")
	fresh := ledger.Handle{Issuer: "k3", ID: "h3"}
	for _, err := range atOnce(6, func(i int) error {
		l := []living{p, q}[i%2]
		_, err := s.MintDescendant(ctx, s.mint(l, fmt.Sprintf("x%d", i), fresh))
		return err
	}) {
		want(t, err, nil)
	}
}

func mintRefused(t *testing.T, ctx context.Context, s *bench) {
	p, q := s.born(t, ctx, "p"), s.born(t, ctx, "q")
	refused := func(expected error, spoil func(*ledger.MintDescendant)) {
		t.Helper()
		ask := s.mint(p, "c", handle)
		spoil(&ask)
		_, err := s.MintDescendant(ctx, ask)
		want(t, err, expected)
	}
	refused(messages.IncarnationEnded, func(m *ledger.MintDescendant) { m.Principal = q.Principal })
	refused(messages.NotGranted, func(m *ledger.MintDescendant) { m.Principal = principal("nobody") })
	refused(messages.IncarnationEnded, func(m *ledger.MintDescendant) { m.UID = names.NewUID() })
	refused(messages.CredentialGone, func(m *ledger.MintDescendant) { m.Root = q.root })
	refused(messages.CredentialGone, func(m *ledger.MintDescendant) { m.Root = "" })
	refused(messages.Malformed, func(m *ledger.MintDescendant) { m.Expires = s.now() })
	refused(messages.Malformed, func(m *ledger.MintDescendant) { m.ID = "a.b" })
	refused(messages.Malformed, func(m *ledger.MintDescendant) { m.UID = "x" })
	refused(messages.Malformed, func(m *ledger.MintDescendant) { m.Handles = []ledger.Handle{{Issuer: "k", ID: ""}} })
	refused(messages.Malformed, func(m *ledger.MintDescendant) { m.Handles = make([]ledger.Handle, 33) })
	granted := must(s.PutGrant(ctx, person("g")))(t) // who never exchanged has no root
	refused(messages.IncarnationEnded, func(m *ledger.MintDescendant) { m.Principal, m.UID = granted.Principal, granted.UID })

	holder := s.holder(t, ctx)
	if err := holder.begin(ctx, takeoverOf(p, names.NewUID())); err != nil {
		t.Fatal(err)
	}
	refused(messages.GateShut, func(*ledger.MintDescendant) {})
	s.pass(91 * 24 * time.Hour)
	refused(messages.CredentialExpired, func(m *ledger.MintDescendant) { m.Principal, m.UID, m.Root = q.Principal, q.uid, q.root })
	must(s.RevokeGrant(ctx, messages.RevokeGrant{Principal: q.Principal, By: "test"}))(t)
	refused(messages.NotGranted, func(m *ledger.MintDescendant) { m.Principal, m.UID, m.Root = q.Principal, q.uid, q.root })
	if keys := must(s.store.List(ctx, "cred.>"))(t); len(keys) != 0 {
		t.Errorf("minted all the same: %v", keys)
	}
	if keys := must(s.store.List(ctx, "srcgate.>"))(t); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}
}

func handleRevoked(t *testing.T, ctx context.Context, s *bench) {
	p, q := s.born(t, ctx, "p"), s.born(t, ctx, "q")
	other := ledger.Handle{Issuer: "k1", ID: "h2"}
	must(s.MintDescendant(ctx, s.mint(p, "a", handle, other)))(t)
	must(s.MintDescendant(ctx, s.mint(q, "a", handle)))(t)
	must(s.MintDescendant(ctx, s.mint(q, "b", other)))(t)
	holder := s.holder(t, ctx)
	want(t, holder.RevokeHandle(ctx, ledger.Handle{Issuer: "k1", ID: "never"}), messages.HandleNotFound)
	want(t, holder.RevokeHandle(ctx, ledger.Handle{Issuer: "*", ID: "h"}), messages.Malformed)
	if err := holder.RevokeHandle(ctx, handle); err != nil {
		t.Fatal(err)
	}
	if a, b := s.states(t, ctx, p), s.states(t, ctx, q); a["a"] != ledger.CredentialRevoked || b["a"] != ledger.CredentialRevoked || b["b"] != ledger.CredentialActive {
		t.Errorf("they are %v and %v", a, b)
	}
	gate, otherGate := s.revision(t, ctx, ledger.SourceKey(handle)), s.revision(t, ctx, ledger.SourceKey(other))
	for _, handles := range [][]ledger.Handle{{handle}, {other, handle}} {
		_, err := s.MintDescendant(ctx, s.mint(q, "late", handles...))
		want(t, err, messages.HandleFrozen)
	}
	// Again: there is nothing to write, and who held any of it is named all the same.
	if err := holder.RevokeHandle(ctx, handle); err != nil {
		t.Fatal(err)
	}
	if s.revision(t, ctx, ledger.SourceKey(handle)) != gate || s.revision(t, ctx, ledger.SourceKey(other)) != otherGate {
		t.Error("a gate was written again")
	}
	named := must(holder.Lineage(ctx, must(holder.Rows(ctx, ledger.LineageOf(handle)))(t)))(t)
	if holders := must(holder.Holders(ctx, named))(t); !slices.Equal(holders, []messages.Principal{p.Principal, q.Principal}) {
		t.Errorf("the holders are %v", holders)
	}
}

// served is a service instance that is registered.
func (s *bench) served(t *testing.T, ctx context.Context, actor string) messages.Instance {
	t.Helper()
	registrar := ledger.NewRegistrar(s.store, func(context.Context, []messages.Principal) error { return nil }, nil)
	return must(registrar.Register(ctx, messages.RegisterInstance{Endpoint: "svc_a", Instance: names.NewUID(), Principal: principal(actor)}))(t).Instance
}

func (s *bench) session(l living, id string, at messages.Instance) ledger.RedeemSession {
	return ledger.RedeemSession{ID: id, Principal: l.Principal, UID: l.uid, Root: l.root, Endpoint: at.Endpoint, Instance: at.Name,
		Epoch: at.Epoch, Expires: s.now().Add(time.Hour)}
}

func redeemedOnce(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	at := s.served(t, ctx, "svc")
	ask := s.session(p, "s1", at)
	head, gate := s.revision(t, ctx, ledger.HeadKey(p.Principal)), s.revision(t, ctx, ledger.InstanceKey(at.Endpoint, at.Name))
	oneOf(t, atOnce(6, func(int) error {
		_, err := s.RedeemSession(ctx, ask)
		return err
	}), messages.SessionUsed)
	_, err := s.RedeemSession(ctx, ask)
	want(t, err, messages.SessionUsed)
	if s.revision(t, ctx, ledger.HeadKey(p.Principal)) == head || s.revision(t, ctx, ledger.InstanceKey(at.Endpoint, at.Name)) == gate {
		t.Error("a gate was not touched")
	}
	if states := s.states(t, ctx, p); len(states) != 1 || states["s1-c"] != ledger.CredentialActive {
		t.Errorf("the caller has %v", states)
	}
	for expected, spoil := range map[error]func(*ledger.RedeemSession){
		messages.InstanceNotFound:   func(r *ledger.RedeemSession) { r.Instance = names.NewUID() },
		messages.InstanceSuperseded: func(r *ledger.RedeemSession) { r.Epoch++ },
		messages.CredentialGone:     func(r *ledger.RedeemSession) { r.Root = names.NewUID() },
		messages.NotGranted:         func(r *ledger.RedeemSession) { r.Principal = principal("nobody") },
		messages.Malformed:          func(r *ledger.RedeemSession) { r.ID = "a.b" },
	} {
		ask := s.session(p, "s2", at)
		spoil(&ask)
		_, err := s.RedeemSession(ctx, ask)
		want(t, err, expected)
	}
	must(s.MintDescendant(ctx, s.mint(p, "s3-c")))(t)
	_, err = s.RedeemSession(ctx, s.session(p, "s3", at))
	want(t, err, messages.CredentialConflict)
	// Both ways at once, and with himself.
	q := s.born(t, ctx, "q")
	there, here := s.served(t, ctx, "q"), s.served(t, ctx, "p")
	for _, err := range atOnce(3, func(i int) error {
		_, err := s.RedeemSession(ctx, []ledger.RedeemSession{s.session(p, "x1", there), s.session(q, "x2", here), s.session(p, "x3", here)}[i])
		return err
	}) {
		want(t, err, nil)
	}
}

func sessionEnds(t *testing.T, ctx context.Context, s *bench) {
	p, at := s.born(t, ctx, "p"), s.served(t, ctx, "svc")
	session := must(s.RedeemSession(ctx, s.session(p, "s1", at)))(t)
	half := ledger.InstanceCredentialKey(at.Endpoint, at.Name, session.ServerCredential())
	holder := s.holder(t, ctx)
	rows := must(holder.Rows(ctx, ledger.CredentialsOf(p.uid)))(t)
	for range 2 { // the server is to be evicted also once its half is revoked
		if holders := must(holder.Holders(ctx, rows))(t); !slices.Equal(holders, []messages.Principal{p.Principal, principal("svc")}) {
			t.Errorf("the holders are %v", holders)
		}
		must(holder.Takeover(ctx, takeoverOf(p, names.NewUID())))(t)
		row, _, err := s.store.Get(ctx, half)
		if err != nil {
			t.Fatal(err)
		}
		if c := must(ledger.DecodeInstanceCredential(row))(t); c.State != ledger.CredentialRevoked {
			t.Errorf("the server's half is %s", c.State)
		}
	}
	// A session without its record is refused, and the gate stays shut.
	next := s.rooted(t, ctx, p)
	value := must(ledger.EncodeCredential(ledger.Credential{ID: "s9-c", Holder: p.Principal, UID: p.uid, Chain: []string{"root", "session.s9"},
		State: ledger.CredentialActive, Expires: s.now().Add(time.Hour)}))(t)
	must(s.store.Apply(ctx, ledger.Batch{Writes: []ledger.Write{ledger.Create(ledger.CredentialKey(p.uid, "s9-c"), value)}}))(t)
	_, err := holder.Takeover(ctx, takeoverOf(next, names.NewUID()))
	want(t, err, messages.RowCorrupt)
	if head := s.head(t, ctx, p); head.State != messages.HeadFrozen {
		t.Errorf("the head is %+v", head)
	}
	s.broken = true
}

func garbledFamily(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	must(s.MintDescendant(ctx, s.mint(p, "a")))(t)
	key := ledger.CredentialKey(p.uid, "a")
	row, _, _ := s.store.Get(ctx, key)
	must(s.store.Apply(ctx, ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, []byte(`{"v":1}`))}}))(t)
	holder, id := s.holder(t, ctx), names.NewUID()
	_, err := holder.Takeover(ctx, takeoverOf(p, id))
	want(t, err, messages.RowCorrupt)
	if head := s.head(t, ctx, p); head.State != messages.HeadFrozen || head.Epoch != 1 {
		t.Errorf("the head is %+v", head)
	}
	if op := must(holder.Operation(ctx, id))(t); op.Step != messages.StepBegun {
		t.Errorf("the operation is %+v", op)
	}
	// Nobody else is kept from anything.
	q := s.born(t, ctx, "q")
	must(holder.Takeover(ctx, takeoverOf(q, names.NewUID())))(t)
	s.broken = true
}

func largeFamily(t *testing.T, ctx context.Context, s *bench) {
	const many = 2*revokedAtOnce + 1
	p := s.born(t, ctx, "p")
	var writes []ledger.Write
	for i := range many {
		id := fmt.Sprintf("c%03d", i)
		value := must(ledger.EncodeCredential(ledger.Credential{ID: id, Holder: p.Principal, UID: p.uid, Chain: []string{"root"},
			State: ledger.CredentialActive, Expires: s.now().Add(time.Hour)}))(t)
		writes = append(writes, ledger.Create(ledger.CredentialKey(p.uid, id), value))
	}
	must(s.store.Apply(ctx, ledger.Batch{Writes: writes}))(t)
	holder, id := s.holder(t, ctx), names.NewUID()
	if err := holder.begin(ctx, takeoverOf(p, id)); err != nil {
		t.Fatal(err)
	}
	op, rows := must(holder.Operation(ctx, id))(t), must(holder.Rows(ctx, ledger.CredentialsOf(p.uid)))(t)
	_, err := holder.RevokeFamily(ctx, op, rows)
	want(t, err, messages.InternalFault)
	q := s.born(t, ctx, "q")
	must(s.MintDescendant(ctx, s.mint(q, "a")))(t)
	_, err = holder.RevokeFamily(ctx, op, must(holder.Rows(ctx, ledger.CredentialsOf(q.uid)))(t))
	want(t, err, messages.InternalFault)
	if done := must(holder.Run(ctx, id))(t); done.Outcome.Revoked != many {
		t.Errorf("it revoked %d", done.Outcome.Revoked)
	}
	if step, err := holder.RevokeFamily(ctx, op, rows[:revokedAtOnce]); err != nil || !step.Empty() {
		t.Errorf("what is revoked is written again: %d rows, %v", len(step.Writes), err)
	}
}
