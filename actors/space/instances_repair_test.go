package space_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// cutting lets a number of writes through and loses its process at the next, before or
// after it has landed.
type cutting struct {
	ledger.Backend
	left  int
	after bool
	sent  int
}

var errCut = errors.New("the process died")

func (c *cutting) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	if c.sent++; c.sent <= c.left {
		return c.Backend.Send(ctx, b)
	}
	if c.after {
		if _, err := c.Backend.Send(ctx, b); err != nil {
			return 0, err
		}
	}
	return 0, errCut
}

// A registration dies at each of its writes; it is repaired, but not while its
// connection lives, and not where there is nothing to repair.
func TestARegistrationThatDiedIsRepaired(t *testing.T) {
	t.Parallel()
	const writes = 3 // it freezes, revokes, and opens
	for n := range writes {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, landed %v", n, after), func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				first := s.registers()
				s.must(s.issue(first, "c-first"))
				backend, conn := s.backend()
				cut := &cutting{Backend: backend, left: n, after: after}
				nobody := func(context.Context, []messages.Principal) error { return nil }
				_, err := ledger.NewRegistrar(ledger.NewStore(cut, ledger.DefaultPatience()), nobody, nil).Over(conn.User()).
					Register(t.Context(), messages.RegisterInstance{Endpoint: endpoint, Instance: instance, Principal: s.principal()})
				if !errors.Is(err, errCut) {
					t.Fatalf("it did not die: %v", err)
				}
				before := s.gate()
				frozen := n > 0 && !(n == 2 && after) || n == 0 && after
				if (before.State == messages.InstanceFrozen) != frozen {
					t.Fatalf("the gate is %+v", before)
				}
				if _, err := s.Space.RepairInstance(t.Context(), endpoint, instance); frozen && !errors.Is(err, messages.RegistrationAlive) ||
					!frozen && !errors.Is(err, messages.InstanceNotFrozen) || s.gate() != before {
					t.Fatalf("while it lives: %v, %+v", err, s.gate())
				}
				s.must(conn.Close(t.Context()))
				var opened map[string]any
				status := s.Call("POST", "/v1/repair", map[string]string{"endpoint": endpoint, "instance": instance}, &opened)
				if !frozen {
					if status != http.StatusPreconditionFailed || s.gate() != before {
						t.Errorf("nothing to repair: %d %v", status, opened)
					}
					return
				}
				if status != http.StatusOK || opened["state"] != "open" || opened["epoch"] != 0.0 {
					t.Errorf("repaired %d %v", status, opened)
				}
				if gate := s.gate(); gate.State != messages.InstanceOpen || gate.Epoch != 0 || gate.Generation != 2 || s.credential("c-first") != ledger.CredentialRevoked {
					t.Errorf("the gate is %+v, the credential %s", gate, s.credential("c-first"))
				}
				if _, err := s.Space.RepairInstance(t.Context(), endpoint, instance); !errors.Is(err, messages.InstanceNotFrozen) {
					t.Errorf("once more: %v", err)
				}
				if next := s.registers(); next.Instance.Epoch != 1 {
					t.Errorf("the next one is %+v", next)
				}
				s.ended(3)
			})
		}
	}
}
