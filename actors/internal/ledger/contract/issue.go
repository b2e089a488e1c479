package contract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Issues runs what is issued to instances over a backend. open gives a new and empty
// one.
func Issues(t *testing.T, open func(t *testing.T) Subject) {
	cases := []struct {
		name string
		run  func(*testing.T, context.Context, *bench)
	}{
		{"issued", issued}, {"who is issued nothing", issueRefused}, {"all or none", issuedTogether},
		{"issued at once", issuedAtOnce}, {"nothing is issued past a registration", issuePausesForRegistration},
		{"a registration while others are issued something", registrationAgainstIssues}, {"cut anywhere", issueCut},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { within(t, patience, open, c.run) })
	}
}

// issuer writes through b.
func (s *bench) issuer(b ledger.Backend) *ledger.Issuer {
	return ledger.NewIssuer(ledger.NewStore(b, ledger.DefaultPatience()), ledger.Options{Now: s.now})
}

// issuing asks for credentials of a registered process, good for an hour.
func (s *bench) issuing(to messages.Instance, ids ...string) ledger.IssueToInstance {
	ask := ledger.IssueToInstance{Endpoint: to.Endpoint, Instance: to.Name, Epoch: to.Epoch, Principal: to.Principal}
	for _, id := range ids {
		ask.Credentials = append(ask.Credentials, ledger.InstanceCredential{ID: id, Holder: to.Principal, Endpoint: to.Endpoint, Instance: to.Name,
			Epoch: to.Epoch, State: ledger.CredentialActive, Expires: s.now().Add(time.Hour)})
	}
	return ask
}

// again registers the next process of an instance.
func (s *bench) again(t *testing.T, ctx context.Context, i messages.Instance) messages.InstanceRegistered {
	t.Helper()
	registrar := ledger.NewRegistrar(s.store, func(context.Context, []messages.Principal) error { return nil }, nil)
	return must(registrar.Register(ctx, messages.RegisterInstance{Endpoint: i.Endpoint, Instance: i.Name, Principal: i.Principal}))(t)
}

// frozen registers a process that cannot end the one before it.
func (s *bench) frozen(t *testing.T, ctx context.Context, i messages.Instance) {
	t.Helper()
	_, err := ledger.NewRegistrar(s.store, nil, nil).Hosting().Register(ctx, messages.RegisterInstance{Endpoint: i.Endpoint, Instance: i.Name, Principal: i.Principal})
	want(t, err, messages.InstanceHeld)
}

// issuedTo are the states of an instance's credentials, by id.
func (s *bench) issuedTo(t *testing.T, ctx context.Context, i messages.Instance) map[string]ledger.CredentialState {
	t.Helper()
	states := map[string]ledger.CredentialState{}
	for _, key := range must(s.store.List(ctx, ledger.InstanceCredentialsOf(i.Endpoint, i.Name)))(t) {
		row, _, err := s.store.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		c := must(ledger.DecodeInstanceCredential(row))(t)
		states[c.ID] = c.State
	}
	return states
}

func issued(t *testing.T, ctx context.Context, s *bench) {
	at, issuer := s.served(t, ctx, "svc"), s.issuer(s.backend)
	gate := ledger.InstanceKey(at.Endpoint, at.Name)
	before, _, _ := s.store.Get(ctx, gate)
	ask := s.issuing(at, "a", "b")
	if got := must(issuer.Issue(ctx, ask))(t); got != at {
		t.Errorf("answered %+v, and it is %+v", got, at)
	}
	after, _, _ := s.store.Get(ctx, gate)
	if must(ledger.DecodeInstance(after))(t) != at || string(after.Value) == string(before.Value) || after.Revision == before.Revision {
		t.Errorf("the gate was %s and is %s", before.Value, after.Value)
	}
	written := s.revision(t, ctx, ledger.InstanceCredentialKey(at.Endpoint, at.Name, "a"))
	// The same again is the same, written once; anything else under an id is refused.
	if got := must(issuer.Issue(ctx, ask))(t); got != at || s.revision(t, ctx, ledger.InstanceCredentialKey(at.Endpoint, at.Name, "a")) != written {
		t.Errorf("again: %+v", got)
	}
	other := s.issuing(at, "a")
	other.Credentials[0].Expires = other.Credentials[0].Expires.Add(time.Second)
	for _, ask := range []ledger.IssueToInstance{other, s.issuing(at, "b", "c")} {
		_, err := issuer.Issue(ctx, ask)
		want(t, err, messages.CredentialConflict)
	}
	// The next process ends them, and has its own.
	next := s.again(t, ctx, at)
	if next.Revoked != 2 {
		t.Errorf("revoked %d", next.Revoked)
	}
	_, err := issuer.Issue(ctx, ask)
	want(t, err, messages.InstanceSuperseded)
	must(issuer.Issue(ctx, s.issuing(next.Instance, "c")))(t)
	if states := s.issuedTo(t, ctx, at); len(states) != 3 || states["a"] != ledger.CredentialRevoked || states["b"] != ledger.CredentialRevoked || states["c"] != ledger.CredentialActive {
		t.Errorf("they are %v", states)
	}
}

func issueRefused(t *testing.T, ctx context.Context, s *bench) {
	at, issuer := s.served(t, ctx, "svc"), s.issuer(s.backend)
	refused := func(expected error, spoil func(*ledger.IssueToInstance)) {
		t.Helper()
		ask := s.issuing(at, "a", "b")
		spoil(&ask)
		_, err := issuer.Issue(ctx, ask)
		want(t, err, expected)
	}
	credential := func(spoil func(*ledger.InstanceCredential)) func(*ledger.IssueToInstance) {
		return func(ask *ledger.IssueToInstance) { spoil(&ask.Credentials[1]) }
	}
	refused(messages.InstanceNotFound, func(ask *ledger.IssueToInstance) {
		*ask = s.issuing(messages.Instance{Endpoint: "svc_a", Name: names.NewUID(), Principal: at.Principal}, "a")
	})
	refused(messages.InstanceForeign, func(ask *ledger.IssueToInstance) { ask.Principal = principal("other") })
	refused(messages.InstanceSuperseded, func(ask *ledger.IssueToInstance) {
		later := at
		later.Epoch++
		*ask = s.issuing(later, "a")
	})
	refused(messages.Malformed, func(ask *ledger.IssueToInstance) { ask.Endpoint = "a.b" })
	refused(messages.Malformed, func(ask *ledger.IssueToInstance) { ask.Instance = "one" })
	refused(messages.Malformed, func(ask *ledger.IssueToInstance) { ask.Principal = messages.Principal{} })
	refused(messages.Malformed, func(ask *ledger.IssueToInstance) { ask.Credentials = nil })
	refused(messages.Malformed, func(ask *ledger.IssueToInstance) {
		ask.Credentials = make([]ledger.InstanceCredential, ledger.MaxIssued+1)
	})
	refused(messages.Malformed, credential(func(c *ledger.InstanceCredential) { c.ID = "a" }))
	refused(messages.Malformed, credential(func(c *ledger.InstanceCredential) { c.ID = "a.b" }))
	refused(messages.Malformed, credential(func(c *ledger.InstanceCredential) { c.Holder.Owner = "x" }))
	refused(messages.Malformed, credential(func(c *ledger.InstanceCredential) { c.Epoch++ }))
	refused(messages.Malformed, credential(func(c *ledger.InstanceCredential) { c.Instance = names.NewUID() }))
	refused(messages.Malformed, credential(func(c *ledger.InstanceCredential) { c.Endpoint = "svc_b" }))
	refused(messages.Malformed, credential(func(c *ledger.InstanceCredential) { c.State = ledger.CredentialRevoked }))
	refused(messages.Malformed, credential(func(c *ledger.InstanceCredential) { c.Expires = s.now() }))
	refused(messages.Malformed, credential(func(c *ledger.InstanceCredential) { c.Expires = time.Time{} }))
	s.frozen(t, ctx, at)
	refused(messages.InstanceNotOpen, func(*ledger.IssueToInstance) {})
	if states := s.issuedTo(t, ctx, at); len(states) != 0 {
		t.Errorf("issued all the same: %v", states)
	}
}

// issuedTogether has one of several ids taken: nothing is written of the others.
func issuedTogether(t *testing.T, ctx context.Context, s *bench) {
	at, issuer := s.served(t, ctx, "svc"), s.issuer(s.backend)
	must(issuer.Issue(ctx, s.issuing(at, "b")))(t)
	_, err := issuer.Issue(ctx, s.issuing(at, "a", "b", "c"))
	want(t, err, messages.CredentialConflict)
	if states := s.issuedTo(t, ctx, at); len(states) != 1 {
		t.Errorf("they are %v", states)
	}
	// Revoked by a repair, which leaves the epoch: they are not issued again.
	s.frozen(t, ctx, at)
	registrar := ledger.NewRegistrar(s.store, func(context.Context, []messages.Principal) error { return nil }, nil)
	must(registrar.Reconcile(ctx, messages.ReconcileInstance{Endpoint: at.Endpoint, Instance: at.Name}, func(context.Context, messages.Instance) error { return nil }))(t)
	_, err = issuer.Issue(ctx, s.issuing(at, "b"))
	want(t, err, messages.CredentialGone)
	must(issuer.Issue(ctx, s.issuing(at, "c")))(t)
}

func issuedAtOnce(t *testing.T, ctx context.Context, s *bench) {
	at, issuer := s.served(t, ctx, "svc"), s.issuer(s.backend)
	for _, err := range atOnce(8, func(i int) error { // each is asked for twice
		_, err := issuer.Issue(ctx, s.issuing(at, fmt.Sprintf("c%d", i/2)))
		return err
	}) {
		want(t, err, nil)
	}
	if states := s.issuedTo(t, ctx, at); len(states) != 4 {
		t.Errorf("they are %v", states)
	}
}

// issuePausesForRegistration has a registration begin, and complete, between the read
// and the write.
func issuePausesForRegistration(t *testing.T, ctx context.Context, s *bench) {
	at := s.served(t, ctx, "svc")
	behind := func(meanwhile func()) *ledger.Issuer {
		return s.issuer(&paused{Backend: s.backend, before: []func(){meanwhile}})
	}
	_, err := behind(func() { s.frozen(t, ctx, at) }).Issue(ctx, s.issuing(at, "a"))
	want(t, err, messages.InstanceNotOpen)
	was := s.again(t, ctx, at)
	var next messages.InstanceRegistered
	_, err = behind(func() { next = s.again(t, ctx, at) }).Issue(ctx, s.issuing(was.Instance, "a"))
	want(t, err, messages.InstanceSuperseded)
	if states := s.issuedTo(t, ctx, at); len(states) != 0 {
		t.Errorf("they are %v", states)
	}
	// Asked for again when it was issued already: then too it is the gate that decides.
	must(s.issuer(s.backend).Issue(ctx, s.issuing(next.Instance, "b")))(t)
	_, err = behind(func() { s.again(t, ctx, at) }).Issue(ctx, s.issuing(next.Instance, "b"))
	want(t, err, messages.InstanceSuperseded)
	// Somebody else's credential costs one more try.
	last := s.again(t, ctx, at)
	_, err = behind(func() { must(s.issuer(s.backend).Issue(ctx, s.issuing(last.Instance, "c")))(t) }).Issue(ctx, s.issuing(last.Instance, "d"))
	want(t, err, nil)
}

// registrationAgainstIssues issues to a process while the next one registers: it
// registers all the same, and nothing of the one before is left.
func registrationAgainstIssues(t *testing.T, ctx context.Context, s *bench) {
	at, issuer := s.served(t, ctx, "svc"), s.issuer(s.backend)
	var racing sync.WaitGroup
	for i := range 6 {
		racing.Go(func() {
			_, err := issuer.Issue(ctx, s.issuing(at, fmt.Sprintf("c%d", i)))
			if err != nil && !errors.Is(err, messages.InstanceNotOpen) && !errors.Is(err, messages.InstanceSuperseded) {
				t.Errorf("issue %d: %v", i, err)
			}
		})
	}
	racing.Go(func() {
		if next := s.again(t, ctx, at); next.Instance.Epoch != 1 {
			t.Errorf("registered as %+v", next.Instance)
		}
	})
	racing.Wait()
	for id, state := range s.issuedTo(t, ctx, at) {
		if state == ledger.CredentialActive {
			t.Errorf("%s is active", id)
		}
	}
}

// issueCut cuts the one write in every way: all is there or nothing, and asking again
// ends where the first would have.
func issueCut(t *testing.T, ctx context.Context, s *bench) {
	for _, c := range []cut{cutBefore, cutAfter, cutAnswer} {
		at := s.served(t, ctx, "svc")
		ask := s.issuing(at, "a", "b")
		_, err := s.issuer(&cutting{Backend: s.backend, cut: c}).Issue(ctx, ask)
		if (err == nil) != (c == cutAnswer) {
			t.Errorf("%s: it says %v", c, err)
		}
		landed := 2
		if c == cutBefore {
			landed = 0
		}
		if states := s.issuedTo(t, ctx, at); len(states) != landed {
			t.Errorf("%s: they are %v", c, states)
		}
		must(s.issuer(s.backend).Issue(ctx, ask))(t)
		if states := s.issuedTo(t, ctx, at); len(states) != 2 {
			t.Errorf("%s: asked for again they are %v", c, states)
		}
		if next := s.again(t, ctx, at); next.Revoked != 2 {
			t.Errorf("%s: the next process revoked %d", c, next.Revoked)
		}
	}
	// The answer is lost, and the gate has been written over since.
	at := s.served(t, ctx, "svc")
	overtaken := &overwritten{Backend: s.backend, after: func() { must(s.issuer(s.backend).Issue(ctx, s.issuing(at, "z")))(t) }}
	must(s.issuer(overtaken).Issue(ctx, s.issuing(at, "a")))(t)
	if states := s.issuedTo(t, ctx, at); len(states) != 2 {
		t.Errorf("they are %v", states)
	}
	overtaken = &overwritten{Backend: s.backend, after: func() { s.again(t, ctx, at) }}
	_, err := s.issuer(overtaken).Issue(ctx, s.issuing(at, "b"))
	want(t, err, messages.InstanceSuperseded)
	if err == nil || strings.Contains(err.Error(), "unknown") {
		t.Errorf("the outcome is known: %v", err)
	}
}

// overwritten is a backend whose first write lands without an answer, and is then
// followed by something.
type overwritten struct {
	ledger.Backend
	after func()
}

func (o *overwritten) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	last, err := o.Backend.Send(ctx, b)
	if o.after == nil || err != nil {
		return last, err
	}
	after := o.after
	o.after = nil
	after()
	return 0, ledger.ErrUnknown
}
