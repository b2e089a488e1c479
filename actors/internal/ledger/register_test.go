package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

func TestEachProcessHasTheNextEpoch(t *testing.T) {
	b, e := memory.New(), &eviction{}
	revision := uint64(0)
	for epoch := range uint64(4) {
		done := register(t, b, e)
		got := done.Instance
		if got.Epoch != epoch || got.Generation != epoch+1 || got.State != messages.InstanceOpen || got.Principal != asked.Principal ||
			got.Operation != (messages.OperationRef{}) {
			t.Errorf("process %d is %+v", epoch, got)
		}
		if (epoch == 0) != (got.RegistrationRevision == 0) || (epoch > 0 && got.RegistrationRevision <= revision) {
			t.Errorf("registration %d follows %d", got.RegistrationRevision, revision)
		}
		revision = got.RegistrationRevision
		gate, _ := standing(t, b)
		row, _, _ := b.Get(t.Context(), ledger.InstanceKey(asked.Endpoint, asked.Instance))
		if gate != got || row.Revision != done.Revision {
			t.Errorf("answered %+v at %d, and %+v stands at %d", got, done.Revision, gate, row.Revision)
		}
	}
	if e.calls != 0 {
		t.Error("somebody was evicted, though nothing was issued")
	}
}

func TestARegistrationEndsWhatWasIssued(t *testing.T) {
	b, e := memory.New(), &eviction{}
	first := register(t, b, e)
	for i := range 3 {
		mustIssue(t, b, first, fmt.Sprintf("c%d", i), []string{"x", "y", "x"}[i])
	}
	e.do = func() error {
		gate, credentials := standing(t, b)
		for id, c := range credentials {
			if c.State != ledger.CredentialRevoked {
				t.Errorf("%s is %s while its holder is evicted", id, c.State)
			}
		}
		if gate.State != messages.InstanceFrozen {
			t.Errorf("the gate is %s while holders are evicted", gate.State)
		}
		return nil
	}
	second := register(t, b, e)
	if second.Revoked != 3 || !slices.Equal(e.holders, []messages.Principal{principal("x"), principal("y")}) {
		t.Errorf("revoked %d, evicted %v", second.Revoked, e.holders)
	}
	if err := issue(t.Context(), b, first, "late", "x"); !errors.Is(err, messages.InstanceSuperseded) {
		t.Errorf("the former process is given something: %v", err)
	}
	mustIssue(t, b, second, "c3", "x")
	if _, credentials := standing(t, b); credentials["c3"].State != ledger.CredentialActive || credentials["c0"].State != ledger.CredentialRevoked {
		t.Errorf("credentials: %v", credentials)
	}
}

func TestAGateThatCannotBeClearedStaysShut(t *testing.T) {
	b, e := memory.New(), &eviction{}
	first := register(t, b, e)
	mustIssue(t, b, first, "c", "x")
	e.do = func() error { return messages.InstanceHeld }
	if _, err := registrar(b, e).Register(t.Context(), asked); !errors.Is(err, messages.InstanceHeld) {
		t.Fatalf("got %v", err)
	}
	if gate, _ := standing(t, b); gate.State != messages.InstanceFrozen || gate.Epoch != 0 {
		t.Errorf("the gate is %+v", gate)
	}
	if _, err := ledger.NewRegistrar(ledger.NewStore(b, brisk), nil, nil).Register(t.Context(), asked); !errors.Is(err, messages.InstanceHeld) {
		t.Errorf("nobody to evict with: %v", err)
	}
	e.do = nil
	next := register(t, b, e)
	if next.Instance.Epoch != 1 || len(e.holders) != 1 {
		t.Errorf("the next one is %+v, and %v were evicted", next.Instance, e.holders)
	}
}

func TestWhoMayNotRegister(t *testing.T) {
	b, e := memory.New(), &eviction{}
	register(t, b, e)
	for what, c := range map[string]struct {
		spoil func(*messages.RegisterInstance)
		want  error
	}{
		"another principal":   {func(m *messages.RegisterInstance) { m.Principal = principal("other") }, messages.InstanceForeign},
		"an endpoint of two":  {func(m *messages.RegisterInstance) { m.Endpoint = "a.b" }, messages.Malformed},
		"an empty endpoint":   {func(m *messages.RegisterInstance) { m.Endpoint = "" }, messages.Malformed},
		"an instance by name": {func(m *messages.RegisterInstance) { m.Instance = "one" }, messages.Malformed},
		"nobody":              {func(m *messages.RegisterInstance) { m.Principal = messages.Principal{} }, messages.Malformed},
		"an unknown owner":    {func(m *messages.RegisterInstance) { m.Principal.Owner = "x" }, messages.Malformed},
		"an actor of two":     {func(m *messages.RegisterInstance) { m.Principal = messages.Principal{Owner: "local", Actor: "a.b"} }, messages.Malformed},
	} {
		ask := asked
		c.spoil(&ask)
		if _, err := registrar(b, e).Register(t.Context(), ask); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	own := messages.RegisterInstance{Endpoint: "auth", Instance: other, Principal: messages.Principal{Owner: "local", Actor: "auth"}}
	if _, err := registrar(b, e).Register(t.Context(), own); err != nil {
		t.Errorf("the infrastructure: %v", err)
	}
}

// TestTheNewerProcessWins lets another process register while holders are evicted.
func TestTheNewerProcessWins(t *testing.T) {
	b, e := memory.New(), &eviction{}
	first := register(t, b, e)
	mustIssue(t, b, first, "c", "x")
	var newer messages.InstanceRegistered
	e.do = func() error {
		newer = register(t, b, &eviction{})
		mustIssue(t, b, newer, "d", "x")
		return nil
	}
	if _, err := registrar(b, e).Register(t.Context(), asked); !errors.Is(err, messages.InstanceSuperseded) {
		t.Errorf("got %v", err)
	}
	gate, credentials := standing(t, b)
	if gate != newer.Instance || credentials["d"].State != ledger.CredentialActive {
		t.Errorf("the newer one has %+v, %v", gate, credentials)
	}
}

// The gate tells over whose connection it was frozen, and nobody else's.
func TestAFrozenGateNamesWhoFrozeIt(t *testing.T) {
	b, e := memory.New(), &eviction{}
	mustIssue(t, b, register(t, b, e), "c", "x")
	e.do = func() error { return messages.InstanceHeld }
	if _, err := registrar(b, e).Over("UA").Register(t.Context(), asked); !errors.Is(err, messages.InstanceHeld) {
		t.Fatal(err)
	}
	gate, _ := standing(t, b)
	if !ledger.FrozenBy(gate, "UA") || ledger.FrozenBy(gate, "UB") || ledger.FrozenBy(gate, "") {
		t.Errorf("frozen by another than %+v says", gate)
	}
	e.do = nil
	if opened := register(t, b, e); ledger.FrozenBy(opened.Instance, "UA") {
		t.Error("an open gate is frozen by somebody")
	}
}

// Whoever is connected as the instance's principal goes with the process before.
func TestAHostsFormerProcessIsEvicted(t *testing.T) {
	b, e := memory.New(), &eviction{}
	for epoch := range 3 {
		e.holders = nil
		if _, err := registrar(b, e).Hosting().Register(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
		if evicted := slices.Equal(e.holders, []messages.Principal{asked.Principal}); evicted != (epoch > 0) {
			t.Errorf("process %d: evicted %v", epoch, e.holders)
		}
	}
}

// Gates are listed by endpoint or all, and one that cannot be read hides no other.
func TestInstancesAreListed(t *testing.T) {
	b := memory.New()
	reader := ledger.NewReader(b, nil)
	var names []string
	for _, ask := range []messages.RegisterInstance{
		{Endpoint: "svc_b", Instance: uid, Principal: principal("svc")}, {Endpoint: "svc_a", Instance: other, Principal: principal("svc")}, asked,
	} {
		if _, err := registrar(b, &eviction{}).Register(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	all, err := reader.Instances(t.Context(), messages.ListInstances{})
	for _, i := range all.Items {
		names = append(names, i.Endpoint+" "+i.Name)
	}
	if err != nil || len(names) != 3 || !slices.IsSorted(names) {
		t.Errorf("got %v, %v", names, err)
	}
	row, _, _ := b.Get(t.Context(), ledger.InstanceKey("svc_a", other))
	if _, err := ledger.NewStore(b, brisk).Apply(t.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, []byte("junk"))}}); err != nil {
		t.Fatal(err)
	}
	some, err := reader.Instances(t.Context(), messages.ListInstances{Endpoint: "svc_a"})
	if err != nil || len(some.Items) != 1 || some.Items[0].Name != uid || !slices.Equal(some.Unreadable, []string{row.Key}) {
		t.Errorf("got %+v, %v", some, err)
	}
	if _, err := reader.Instances(t.Context(), messages.ListInstances{Endpoint: "*"}); !errors.Is(err, messages.Malformed) {
		t.Errorf("an endpoint that is a pattern: %v", err)
	}
	if one, err := reader.Instance(t.Context(), messages.ReadInstance{Endpoint: "svc_b", Instance: uid}); err != nil || one.Endpoint != "svc_b" {
		t.Errorf("got %+v, %v", one, err)
	}
	if _, err := reader.Instance(t.Context(), messages.ReadInstance{Endpoint: "svc_c", Instance: uid}); !errors.Is(err, messages.InstanceNotFound) {
		t.Errorf("one that never registered: %v", err)
	}
}
