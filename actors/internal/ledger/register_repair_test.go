package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

func TestReconcile(t *testing.T) {
	b, e := memory.New(), &eviction{}
	ask := messages.ReconcileInstance{Endpoint: asked.Endpoint, Instance: asked.Instance}
	if _, err := registrar(b, e).Reconcile(t.Context(), ask, gone); !errors.Is(err, messages.InstanceNotFound) {
		t.Errorf("before it is there: %v", err)
	}
	first := register(t, b, e)
	if _, err := registrar(b, e).Reconcile(t.Context(), ask, gone); !errors.Is(err, messages.InstanceNotFrozen) || e.calls != 0 {
		t.Errorf("an open gate: %v", err)
	}
	if gate, _ := standing(t, b); gate != first.Instance {
		t.Errorf("an open gate was changed: %+v", gate)
	}
	mustIssue(t, b, first, "c", "x")
	e.do = func() error { return messages.InstanceHeld }
	for range 2 { // a registration that crashed, and a reconciliation that cannot finish
		if _, err := registrar(b, e).Register(t.Context(), asked); !errors.Is(err, messages.InstanceHeld) {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := registrar(b, e).Reconcile(t.Context(), ask, gone); !errors.Is(err, messages.InstanceHeld) {
		t.Errorf("while holders live: %v", err)
	}
	e.do = nil
	calls := e.calls
	before, _ := standing(t, b)
	alive := func(context.Context, messages.Instance) error { return messages.RegistrationAlive }
	if _, err := registrar(b, e).Reconcile(t.Context(), ask, alive); !errors.Is(err, messages.RegistrationAlive) || e.calls != calls {
		t.Errorf("while the registration lives: %v", err)
	}
	if after, _ := standing(t, b); after != before {
		t.Errorf("while the registration lives it was changed to %+v", after)
	}
	done, err := registrar(b, e).Reconcile(t.Context(), ask, gone)
	if err != nil || done.Instance.Epoch != 0 || done.Instance.Generation != 2 || done.Instance.State != messages.InstanceOpen {
		t.Errorf("reconciled %+v, %v", done.Instance, err)
	}
	if !slices.Equal(e.holders, []messages.Principal{principal("x"), asked.Principal}) {
		t.Errorf("evicted %v", e.holders)
	}
}

// gone is said of a registration that is over.
func gone(context.Context, messages.Instance) error { return nil }

// TestARepairGoesOnWhereTheRegistrationStopped cuts a registration at every write, and
// its repair at every write too.
func TestARepairGoesOnWhereTheRegistrationStopped(t *testing.T) {
	ask := messages.ReconcileInstance{Endpoint: asked.Endpoint, Instance: asked.Instance}
	setup := func(t *testing.T) *memory.Backend {
		b := memory.New()
		mustIssue(t, b, register(t, b, &eviction{}), "c", "x")
		return b
	}
	writes := func(b ledger.Backend, do func(ledger.Backend) error) int {
		counted := &flaky{Backend: b, plan: untroubled}
		if err := do(counted); err != nil {
			t.Fatal(err)
		}
		return counted.sends
	}
	registration := func(b ledger.Backend) error {
		_, err := registrar(b, &eviction{}).Register(t.Context(), asked)
		return err
	}
	repair := func(b ledger.Backend) error {
		_, err := registrar(b, &eviction{}).Reconcile(t.Context(), ask, gone)
		return err
	}
	for at := range writes(setup(t), registration) {
		for _, f := range []fate{diesBefore, diesAfter} {
			cut := func(t *testing.T) *memory.Backend {
				b := setup(t)
				if registration(&flaky{Backend: b, plan: nth(at, f)}) == nil {
					t.Fatal("the dead process answered")
				}
				return b
			}
			b := cut(t)
			if gate, _ := standing(t, b); gate.State == messages.InstanceOpen {
				if err := repair(b); !errors.Is(err, messages.InstanceNotFrozen) {
					t.Errorf("write %d, %s: an open gate: %v", at, f, err)
				}
				continue
			}
			for repairedAt := range writes(cut(t), repair) {
				for _, g := range []fate{diesBefore, diesAfter} {
					t.Run(fmt.Sprintf("write %d: %s, write %d of the repair: %s", at, f, repairedAt, g), func(t *testing.T) {
						b := cut(t)
						if repair(&flaky{Backend: b, plan: nth(repairedAt, g)}) == nil {
							t.Fatal("the dead process answered")
						}
						if err := repair(b); err != nil && !errors.Is(err, messages.InstanceNotFrozen) {
							t.Fatal(err)
						}
						gate, credentials := standing(t, b)
						if gate.State != messages.InstanceOpen || gate.Epoch != 0 || gate.Generation != 2 || credentials["c"].State != ledger.CredentialRevoked {
							t.Errorf("repaired to %+v, %v", gate, credentials)
						}
					})
				}
			}
		}
	}
}

// A repair of a registration that was not over after all: one of the two wins.
func TestARepairRacesItsRegistration(t *testing.T) {
	b, e := memory.New(), &eviction{}
	mustIssue(t, b, register(t, b, e), "c", "x")
	e.do = func() error {
		_, err := registrar(b, &eviction{}).Reconcile(t.Context(), messages.ReconcileInstance{Endpoint: asked.Endpoint, Instance: asked.Instance}, gone)
		return err
	}
	if _, err := registrar(b, e).Register(t.Context(), asked); !errors.Is(err, messages.InstanceSuperseded) {
		t.Errorf("got %v", err)
	}
	if gate, _ := standing(t, b); gate.State != messages.InstanceOpen || gate.Epoch != 0 {
		t.Errorf("the gate is %+v", gate)
	}
}
