package space_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// named is the n-th of many instances.
func named(n int) string { return fmt.Sprintf("%026d", n) }

// process registers the next process of an instance, and has it issued its bearer.
func (s *stage) process(name string) messages.InstanceCredentialIssued {
	s.Helper()
	registered, err := s.Space.RegisterHostInstance(s.Context(), endpoint, name, s.principal())
	s.must(err)
	return s.issued(name, registered.Instance.Epoch)
}

func (s *stage) issued(name string, epoch uint64) messages.InstanceCredentialIssued {
	s.Helper()
	got, err := s.Space.IssueInstanceCredential(s.Context(), endpoint, name, epoch, 0)
	s.must(err)
	return got
}

// enters reports why a bearer does not let in; empty when it does.
func (s *stage) enters(bearer string) string {
	s.Helper()
	before := s.denied()
	nc, err := s.With(s.svc.Grant, bearer).Dial(nats.NoReconnect())
	if err == nil {
		nc.Close()
		return ""
	}
	if !world.Refused(err) {
		s.Fatal(err)
	}
	var d messages.Denial
	s.Poll("the denial to be noted", func() bool { // after it was answered
		d = s.denied()
		return d.ID != before.ID
	})
	if d.Kind != messages.Denied || d.Remedy == "" {
		s.Errorf("denied as %+v", d)
	}
	return d.Reason
}

// denied is the latest denial; the zero one before there was any.
func (s *stage) denied() messages.Denial {
	s.Helper()
	denials, err := s.Space.Denials(s.Context())
	s.must(err)
	if len(denials) == 0 {
		return messages.Denial{}
	}
	return denials[0]
}

// ledgerOf reaches the rows of one instance.
func (s *stage) ledgerOf(name string) *ledger.Store {
	s.Helper()
	conn, err := s.dialer.Dial(s.Context(), broker.HostRegistration(endpoint, name), func(*broker.Conn) error { return nil })
	s.must(err)
	s.Cleanup(func() { s.must(conn.Close(context.Background())) })
	config := stream.Config{Space: "main", Replicas: 1, Instance: name}
	return ledger.NewStore(stream.New(conn.NATS(), config, stream.NewLanes(1)), ledger.DefaultPatience())
}

// rewrite writes over a row by hand.
func (s *stage) rewrite(store *ledger.Store, key string, change func(ledger.Row) ([]byte, error)) {
	s.Helper()
	row, found, err := store.Get(s.Context(), key)
	if err != nil || !found {
		s.Fatalf("%s: %v, %v", key, found, err)
	}
	value, err := change(row)
	s.must(err)
	_, err = store.Apply(s.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, value)}})
	s.must(err)
}

func (s *stage) rewriteCredential(name, id string, change func(*ledger.InstanceCredential)) {
	s.Helper()
	s.rewrite(s.ledgerOf(name), ledger.InstanceCredentialKey(endpoint, name, id), func(row ledger.Row) ([]byte, error) {
		c, err := ledger.DecodeInstanceCredential(row)
		s.must(err)
		change(&c)
		return ledger.EncodeInstanceCredential(c)
	})
}

func (s *stage) rewriteGate(name string, change func(*messages.Instance)) {
	s.Helper()
	s.rewrite(s.ledgerOf(name), ledger.InstanceKey(endpoint, name), func(row ledger.Row) ([]byte, error) {
		gate, err := ledger.DecodeInstance(row)
		s.must(err)
		change(&gate)
		return ledger.EncodeInstance(gate, named(0))
	})
}

// A bearer of a process lets in while that process is the one that counts, and not for
// a moment longer.
func TestWhomABearerOfAProcessLetsIn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	keyring := s.keyring()
	signed := func(change func(*identity.Bearer)) func(string, messages.InstanceCredentialIssued) string {
		return func(_ string, got messages.InstanceCredentialIssued) string {
			b, err := keyring.Verify(got.Bearer.Reveal(), time.Now())
			s.must(err)
			change(&b)
			token, err := keyring.Sign(b)
			s.must(err)
			return token.Reveal()
		}
	}
	after := func(change func(name string, got messages.InstanceCredentialIssued)) func(string, messages.InstanceCredentialIssued) string {
		return func(name string, got messages.InstanceCredentialIssued) string {
			change(name, got)
			return got.Bearer.Reveal()
		}
	}
	for n, c := range []struct {
		what string
		make func(string, messages.InstanceCredentialIssued) string
		want messages.Error
	}{
		{"the process that is registered", after(func(string, messages.InstanceCredentialIssued) {}), messages.Error{}},
		{"renewed", after(func(name string, _ messages.InstanceCredentialIssued) { s.issued(name, 0) }), messages.Error{}},
		{"a frozen gate", after(func(name string, _ messages.InstanceCredentialIssued) {
			_, err := ledger.NewRegistrar(s.ledgerOf(name), nil, nil).Register(s.Context(),
				messages.RegisterInstance{Endpoint: endpoint, Instance: name, Principal: s.principal()})
			if !errors.Is(err, messages.InstanceHeld) {
				t.Fatalf("it does not freeze: %v", err)
			}
		}), messages.InstanceNotOpen},
		{"after a repair", after(func(name string, _ messages.InstanceCredentialIssued) {
			_, _ = ledger.NewRegistrar(s.ledgerOf(name), nil, nil).Register(s.Context(),
				messages.RegisterInstance{Endpoint: endpoint, Instance: name, Principal: s.principal()})
			_, err := s.Space.RepairInstance(s.Context(), endpoint, name)
			s.must(err)
			if reason := s.enters(s.issued(name, 0).Bearer.Reveal()); reason != "" {
				t.Errorf("issued after a repair: %s", reason)
			}
		}), messages.CredentialGone},
		{"the next epoch", after(func(name string, _ messages.InstanceCredentialIssued) { s.process(name) }), messages.InstanceSuperseded},
		{"revoked", after(func(name string, got messages.InstanceCredentialIssued) {
			s.rewriteCredential(name, got.CredentialID, func(c *ledger.InstanceCredential) { c.State = ledger.CredentialRevoked })
		}), messages.CredentialGone},
		{"expired", after(func(name string, got messages.InstanceCredentialIssued) {
			s.rewriteCredential(name, got.CredentialID, func(c *ledger.InstanceCredential) { c.Expires = time.Now().Add(-time.Second).Truncate(time.Second) })
		}), messages.CredentialExpired},
		{"another's instance", after(func(name string, _ messages.InstanceCredentialIssued) {
			s.rewriteGate(name, func(g *messages.Instance) { g.Principal.Actor = "other" })
		}), messages.InstanceForeign},
		{"an instance that never registered", signed(func(b *identity.Bearer) { b.Process.Instance = named(999) }), messages.InstanceNotFound},
		{"an epoch that has not been", signed(func(b *identity.Bearer) { b.Process.Epoch = 1 }), messages.InstanceSuperseded},
		{"a credential that was never issued", signed(func(b *identity.Bearer) { b.Process.CredentialID = "own-none" }), messages.CredentialGone},
		{"another root", signed(func(b *identity.Bearer) { b.CredentialID = named(7) }), messages.CredentialGone},
		{"a garbled bearer", func(_ string, got messages.InstanceCredentialIssued) string {
			parts := strings.Split(got.Bearer.Reveal(), ".")
			return parts[0] + "." + parts[1][:len(parts[1])-8] + "AAAAAAAA." + parts[2]
		}, messages.ProofInvalid},
	} {
		name := named(n + 1)
		if got := s.enters(c.make(name, s.process(name))); got != c.want.Reason {
			t.Errorf("%s: %q, not %q", c.what, got, c.want.Reason)
		}
	}
	if reason := s.enters(s.svc.Token); reason != "" {
		t.Errorf("the principal's own bearer: %s", reason)
	}
}

func (s *stage) keyring() *identity.Keyring {
	s.Helper()
	material, err := trust.Load(s.Context(), trust.Directory(s.Config.SecretsDir), "main")
	s.must(err)
	keyring, err := identity.OpenKeyring("main", material.Keyring)
	s.must(err)
	return keyring
}

// Renewing writes no further row, whoever asks and however often; the process after it
// has one of its own.
func TestABearerOfAProcessIsRenewed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first := s.process(instance)
	if life := time.Until(first.Expires); life > identity.MaxBearerLife || life < identity.MaxBearerLife-time.Minute {
		t.Errorf("it lives %s", life)
	}
	for _, err := range atOnce(4, func() error {
		got, err := s.Space.IssueInstanceCredential(s.Context(), endpoint, instance, 0, 3*time.Second)
		if err == nil && (got.CredentialID != first.CredentialID || got.Instance != first.Instance || time.Until(got.Expires) > 3*time.Second) {
			err = fmt.Errorf("renewed as %+v, not %+v", got, first)
		}
		return err
	}) {
		s.must(err)
	}
	second := s.process(instance)
	if second.CredentialID == first.CredentialID || second.Instance.Epoch != 1 {
		t.Errorf("the next one was issued %+v", second)
	}
	store := s.ledgerOf(instance)
	keys, err := store.List(s.Context(), ledger.InstanceCredentialsOf(endpoint, instance))
	if err != nil || len(keys) != 2 {
		t.Errorf("recorded are %v, %v", keys, err)
	}
	if text := fmt.Sprintf("%v %+v %#v", second, second, second); strings.Contains(text, second.Bearer.Reveal()) {
		t.Error("the bearer shows")
	}
}

func atOnce(n int, do func() error) []error {
	told := make(chan error, n)
	for range n {
		go func() { told <- do() }()
	}
	errs := make([]error, n)
	for i := range errs {
		errs[i] = <-told
	}
	return errs
}

// Who is issued nothing is told why, and nothing is recorded.
func TestWhoIsIssuedNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.registers()
	own := s.Space.Status().Plane.Holder
	for _, c := range []struct {
		endpoint, instance string
		epoch              uint64
		life               time.Duration
		want               error
	}{
		{"a.b", instance, 0, 0, messages.Malformed},
		{"", instance, 0, 0, messages.Malformed},
		{endpoint, "one", 0, 0, messages.Malformed},
		{endpoint, instance, 0, -time.Second, messages.Malformed},
		{endpoint, instance, 0, 901 * time.Second, messages.Malformed},
		{endpoint, instance, 0, time.Second / 2, messages.Malformed},
		{"auth", own, 0, 0, messages.InstanceForeign},
		{endpoint, named(1), 0, 0, messages.InstanceNotFound},
		{endpoint, instance, 1, 0, messages.InstanceSuperseded},
		{endpoint, instance, 1<<53 - 1, time.Second, messages.InstanceSuperseded},
		{endpoint, instance, 1 << 53, time.Second, messages.InstanceSuperseded},
		{endpoint, instance, math.MaxUint64, 0, messages.InstanceSuperseded},
		{endpoint, instance, 0, math.MaxInt64, messages.Malformed},
		{endpoint, instance, 0, math.MinInt64, messages.Malformed},
		{endpoint, "*", 0, 0, messages.Malformed},
		{strings.Repeat("a", 100_000), instance, 0, 0, messages.Malformed},
	} {
		if got, err := s.Space.IssueInstanceCredential(t.Context(), c.endpoint, c.instance, c.epoch, c.life); !errors.Is(err, c.want) || !got.Bearer.IsZero() {
			t.Errorf("%+v: %v", c, err)
		}
	}
	s.rewriteGate(instance, func(g *messages.Instance) {
		g.State, g.Operation = messages.InstanceFrozen, messages.OperationRef{ID: named(1), Kind: ledger.KindRegistration}
	})
	if _, err := s.Space.IssueInstanceCredential(t.Context(), endpoint, instance, 0, 0); !errors.Is(err, messages.InstanceNotOpen) {
		t.Errorf("frozen: %v", err)
	}
	if next := s.registers(); next.Instance.Epoch != 1 || next.Revoked != 0 {
		t.Errorf("the next one is %+v", next)
	}
	// Whoever is not granted anything has no bearers at all.
	if status := s.Call("DELETE", s.svc.Path(), nil, nil); status != 200 {
		t.Fatalf("revoke: %d", status)
	}
	if _, err := s.Space.IssueInstanceCredential(t.Context(), endpoint, instance, 1, 0); !errors.Is(err, messages.NotGranted) {
		t.Errorf("after the grant was revoked: %v", err)
	}
	store := s.ledgerOf(instance)
	if keys, err := store.List(s.Context(), ledger.InstanceCredentialsOf(endpoint, instance)); err != nil || len(keys) != 0 {
		t.Errorf("recorded are %v, %v", keys, err)
	}
	s.Close()
	if _, err := s.Space.IssueInstanceCredential(t.Context(), endpoint, instance, 1, 0); !errors.Is(err, messages.ServiceClosing) {
		t.Errorf("while closing: %v", err)
	}
}

// Somebody's first bearer may be that of a process, and a machine's is as short as any of
// its own. After a takeover none lets in any more, until another is issued.
func TestABearerOfAProcessIsItsPrincipals(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var g world.Grant
	if status := s.Call("POST", "/v1/grants", map[string]any{"sub": "server", "actor": "machine", "kind": "managed", "scope": []string{},
		"publish": []string{"svc.>"}, "subscribe": []string{"svc.>"}, "serve": true}, &g); status != 201 {
		t.Fatalf("grant: %d", status)
	}
	machine := messages.Principal{Owner: g.Owner, Actor: g.Actor}
	_, err := s.Space.RegisterHostInstance(t.Context(), endpoint, instance, machine)
	s.must(err)
	got, err := s.Space.IssueInstanceCredential(t.Context(), endpoint, instance, 0, 0)
	if err != nil || time.Until(got.Expires) > 300*time.Second {
		t.Fatalf("issued %+v, %v", got, err)
	}
	s.svc = s.With(g, got.Bearer.Reveal())
	if reason := s.enters(got.Bearer.Reveal()); reason != "" {
		t.Fatalf("refused: %s", reason)
	}
	var op struct{ Step string }
	if status := s.Call("POST", "/v1/takeover", map[string]string{"owner": g.Owner, "actor": g.Actor}, &op); status != 200 || op.Step != string(messages.StepDone) {
		t.Fatalf("takeover: %d %+v", status, op)
	}
	if reason := s.enters(got.Bearer.Reveal()); reason != messages.CredentialGone.Reason {
		t.Errorf("after a takeover: %q", reason)
	}
	if reason := s.enters(s.issued(instance, 0).Bearer.Reveal()); reason != "" {
		t.Errorf("issued after a takeover: %s", reason)
	}
}
