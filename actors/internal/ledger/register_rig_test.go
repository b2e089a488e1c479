package ledger_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

var asked = messages.RegisterInstance{Endpoint: "svc_a", Instance: uid, Principal: principal("svc")}

// eviction notes whom it was asked to evict, and does what it is told.
type eviction struct {
	calls   int
	holders []messages.Principal
	do      func() error
}

func (e *eviction) evict(_ context.Context, holders []messages.Principal) error {
	e.calls++
	e.holders = slices.Clone(holders)
	if e.do != nil {
		return e.do()
	}
	return nil
}

func registrar(b ledger.Backend, e *eviction) *ledger.Registrar {
	return ledger.NewRegistrar(ledger.NewStore(b, brisk), e.evict, nil)
}

func register(t *testing.T, b ledger.Backend, e *eviction) messages.InstanceRegistered {
	t.Helper()
	done, err := registrar(b, e).Register(t.Context(), asked)
	if err != nil {
		t.Fatalf("register: %v", err)
	}
	return done
}

// issue gives the registered process a credential.
func issue(ctx context.Context, b ledger.Backend, to messages.InstanceRegistered, id, holder string) error {
	_, err := ledger.NewIssuer(ledger.NewStore(b, brisk), ledger.Options{Now: fixedClock}).Issue(ctx, issuing(to, id, holder))
	return err
}

func issuing(to messages.InstanceRegistered, id, holder string) ledger.IssueToInstance {
	return ledger.IssueToInstance{Endpoint: asked.Endpoint, Instance: asked.Instance, Epoch: to.Instance.Epoch, Principal: asked.Principal,
		Credentials: []ledger.InstanceCredential{{ID: id, Holder: principal(holder), Endpoint: asked.Endpoint, Instance: asked.Instance,
			Epoch: to.Instance.Epoch, State: ledger.CredentialActive, Expires: someTime.Add(time.Hour)}}}
}

func mustIssue(t *testing.T, b ledger.Backend, to messages.InstanceRegistered, id, holder string) {
	t.Helper()
	if err := issue(t.Context(), b, to, id, holder); err != nil {
		t.Fatalf("issue %s: %v", id, err)
	}
}

// standing are the instance's gate and its credentials' states.
func standing(t *testing.T, b *memory.Backend) (messages.Instance, map[string]ledger.InstanceCredential) {
	t.Helper()
	row, found, err := b.Get(t.Context(), ledger.InstanceKey(asked.Endpoint, asked.Instance))
	if err != nil || !found {
		t.Fatalf("the gate: %v, %v", found, err)
	}
	gate, err := ledger.DecodeInstance(row)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := b.Scan(t.Context(), ledger.Scan{Filter: ledger.InstanceCredentialsOf(asked.Endpoint, asked.Instance)})
	if err != nil {
		t.Fatal(err)
	}
	credentials := map[string]ledger.InstanceCredential{}
	for _, row := range rows {
		c, err := ledger.DecodeInstanceCredential(row)
		if err != nil {
			t.Fatal(err)
		}
		credentials[c.ID] = c
	}
	return gate, credentials
}
