package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

// TestARepairCutAnywhere has a repair meet every fate at each of its writes: whoever
// survives it is told of success, once, and whatever was issued before is no good any more.
func TestARepairCutAnywhere(t *testing.T) {
	ask := messages.ReconcileInstance{Endpoint: asked.Endpoint, Instance: asked.Instance}
	frozen := func(t *testing.T) *memory.Backend {
		b := memory.New()
		mustIssue(t, b, register(t, b, &eviction{}), "c", "x")
		dies := &eviction{do: func() error { return messages.InstanceHeld }}
		if _, err := registrar(b, dies).Register(t.Context(), asked); !errors.Is(err, messages.InstanceHeld) {
			t.Fatalf("got %v", err)
		}
		return b
	}
	counted := &flaky{Backend: frozen(t), plan: untroubled}
	if _, err := registrar(counted, &eviction{}).Reconcile(t.Context(), ask, gone); err != nil || counted.sends == 0 {
		t.Fatalf("%d writes, %v", counted.sends, err)
	}
	for at := range counted.sends {
		for _, f := range append(slices.Clone(survived), diesBefore, diesAfter) {
			t.Run(fmt.Sprintf("write %d: %s", at, f), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // it pauses before it asks again
					b := frozen(t)
					done, err := registrar(&flaky{Backend: b, plan: nth(at, f)}, &eviction{}).Reconcile(t.Context(), ask, gone)
					dies := f == diesBefore || f == diesAfter
					switch {
					case dies && err == nil:
						t.Error("the dead process answered")
					case !dies && (err != nil || done.Instance.Epoch != 0 || done.Instance.State != messages.InstanceOpen):
						t.Errorf("told %+v, %v", done.Instance, err)
					}
					_, err = registrar(b, &eviction{}).Reconcile(t.Context(), ask, gone)
					gate, credentials := standing(t, b)
					if open := !dies || errors.Is(err, messages.InstanceNotFrozen); !open && err != nil || open && !errors.Is(err, messages.InstanceNotFrozen) {
						t.Errorf("once more: %v", err)
					}
					if gate.State != messages.InstanceOpen || gate.Epoch != 0 || gate.Generation != 2 || credentials["c"].State != ledger.CredentialRevoked {
						t.Errorf("the gate is %+v with %v", gate, credentials)
					}
				})
			})
		}
	}
}
