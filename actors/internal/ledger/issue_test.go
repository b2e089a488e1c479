package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

// TestIssuesInterleaved issues to a process from several sides, the same to some, while
// the next one registers, call by call in any order, with any fate of the writes.
func TestIssuesInterleaved(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ids := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 3).Draw(rt, "ids")
		schedule := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 80).Draw(rt, "schedule")
		fates := rapid.SliceOfN(rapid.SampledFrom(append([]fate{answered, answered}, survived...)), 0, 8).Draw(rt, "fates")
		if err := issueAtOnce(t, ids, schedule, fates); err != nil {
			rt.Fatal(err)
		}
	})
}

func issueAtOnce(t *testing.T, ids []string, schedule []int, fates []fate) (complaint error) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		first := register(t, b, &eviction{})
		gate := &turnstile{backend: &flaky{Backend: b, plan: script(fates...)}}
		told := letThrough(gate, schedule, len(ids)+1, func(i int) error {
			store := ledger.NewStore(entrance{gate, i}, steady)
			if i == len(ids) {
				done, err := ledger.NewRegistrar(store, (&eviction{}).evict, nil).Register(t.Context(), asked)
				if err == nil && done.Instance.Epoch != 1 {
					err = fmt.Errorf("registered as %+v", done.Instance)
				}
				return err
			}
			_, err := ledger.NewIssuer(store, ledger.Options{Now: fixedClock}).Issue(t.Context(), issuing(first, ids[i], "x"))
			return err
		})
		if err := told[len(ids)]; err != nil { // nobody else registers: nothing may keep it
			complaint = err
		}
		_, credentials := standing(t, b)
		for i, id := range ids {
			c, there := credentials[id]
			switch err := told[i]; {
			case err == nil && !there:
				complaint = fmt.Errorf("%s was issued, and is not there", id)
			case err != nil && !errors.Is(err, messages.InstanceNotOpen) && !errors.Is(err, messages.InstanceSuperseded):
				complaint = fmt.Errorf("issue %s: %w", id, err)
			}
			if there && c.State != ledger.CredentialRevoked {
				complaint = fmt.Errorf("%s outlives its process", id)
			}
		}
	})
	return complaint
}

// What one decision reads of a process is its gate and its credential, as they are.
func TestAProcessIsRead(t *testing.T) {
	b := memory.New()
	reader := ledger.NewReader(b, nil)
	ask := messages.ReadProcess{Endpoint: asked.Endpoint, Instance: asked.Instance, CredentialID: "c"}
	if got, err := reader.Process(t.Context(), ask); err != nil || got != (messages.ProcessRead{}) {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
	first := register(t, b, &eviction{})
	mustIssue(t, b, first, "c", "x")
	want := messages.ProcessRead{HasGate: true, Gate: first.Instance, HasCredential: true,
		Credential: messages.InstanceCredential{ID: "c", Holder: principal("x"), Endpoint: asked.Endpoint, Instance: asked.Instance, Active: true,
			Expires: issuing(first, "c", "x").Credentials[0].Expires}}
	if got, err := reader.Process(t.Context(), ask); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	want.Gate, want.Credential.Active = register(t, b, &eviction{}).Instance, false
	if got, err := reader.Process(t.Context(), ask); err != nil || got != want {
		t.Errorf("after the next one: %+v, %v, want %+v", got, err, want)
	}
	for _, spoil := range []func(*messages.ReadProcess){
		func(r *messages.ReadProcess) { r.Endpoint = "*" }, func(r *messages.ReadProcess) { r.Instance = ">" },
		func(r *messages.ReadProcess) { r.CredentialID = "*" },
	} {
		ask := ask
		spoil(&ask)
		if _, err := reader.Process(t.Context(), ask); !errors.Is(err, messages.Malformed) {
			t.Errorf("%+v: %v", ask, err)
		}
	}
	for _, key := range []string{ledger.InstanceCredentialKey(asked.Endpoint, asked.Instance, "c"), ledger.InstanceKey(asked.Endpoint, asked.Instance)} {
		row, _, _ := b.Get(t.Context(), key)
		if _, err := ledger.NewStore(b, brisk).Apply(t.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, []byte("junk"))}}); err != nil {
			t.Fatal(err)
		}
		if got, err := reader.Process(t.Context(), ask); !errors.Is(err, messages.RowCorrupt) || got != (messages.ProcessRead{}) {
			t.Errorf("with junk at %s: %+v, %v", key, got, err)
		}
	}
}
