package ledger_test

import (
	"context"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// TestNoBarrierRefusalRestsOnALeaderThatLags asks where the old leader has nothing yet:
// no head, no operation, no credential that is named.
func TestNoBarrierRefusalRestsOnALeaderThatLags(t *testing.T) {
	w := freshWorld(t)
	w.put("p", "")
	w.enrol()
	h := ledger.Handle{Issuer: "k", ID: "h"}
	root := w.authority("p").Head.Root.ID
	if _, err := w.steady().MintDescendant(t.Context(), ledger.MintDescendant{Principal: principal("p"), UID: w.uid, Root: root,
		ID: "c", Handles: []ledger.Handle{h}, Expires: w.clock.AddDate(0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	rows, err := w.backend.Scan(t.Context(), ledger.Scan{Filter: ledger.LineageOf(h)})
	if err != nil {
		t.Fatal(err)
	}
	holder := w.holder(w.backend)
	behind := func() *ledger.Barrier {
		store := ledger.NewStore(&lagging{Backend: w.backend, old: memory.New()}, brisk)
		return ledger.NewBarrier(store, ledger.Options{Now: w.now})
	}
	id := names.NewUID()
	begin := messages.BeginTakeover{ID: id, Principal: principal("p"), UID: w.uid, By: "x"}
	op, step, err := behind().BeginTakeover(t.Context(), begin)
	if err != nil || len(step.Writes) != 2 {
		t.Fatalf("begin: %+v, %v", step, err)
	}
	if _, err := holder.Lane.Write(t.Context(), step); err != nil {
		t.Fatal(err)
	}
	told := map[string]error{}
	_, told["read"] = behind().Operation(t.Context(), id)
	_, told["frozen"] = behind().Frozen(t.Context(), op)
	_, told["advance"] = behind().Advance(t.Context(), op, messages.StepRevoked)
	_, told["revoke"] = behind().RevokeLineage(t.Context(), rows)
	_, told["freeze"] = behind().FreezeHandle(t.Context(), h)
	_, told["holders"] = behind().Holders(t.Context(), []ledger.Row{{Key: ledger.CredentialKey(w.uid, "c")}})
	_, _, told["retire"] = behind().BeginRetirement(t.Context(), messages.AskRetirement{UID: w.uid, By: "x"})
	for what, err := range told {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	// What is answered without a write rests on a proved leader too.
	w.revoke()
	asked, err := w.writer(&lagging{Backend: w.backend, old: old(t, w)}).AskRetirement(t.Context(), messages.AskRetirement{Principal: principal("p"), By: "x"})
	if err != nil || asked.Operation != ledger.OperationOf(w.uid) {
		t.Errorf("asked: %+v, %v", asked, err)
	}
}

// reading is a backend on which something happens before a row is read.
type reading struct {
	ledger.Backend
	before func(key string)
}

func (r *reading) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	r.before(key)
	return r.Backend.Get(ctx, key)
}

// TestARetirementAmongTakeovers has each takeover that it finds end, and the next one
// begin, before it can read it.
func TestARetirementAmongTakeovers(t *testing.T) {
	w := freshWorld(t)
	w.put("p", "")
	w.enrol()
	holder := w.holder(w.backend)
	takeover := func(n int) messages.BeginTakeover {
		return messages.BeginTakeover{ID: name("t", n), Principal: principal("p"), UID: w.uid, By: "x"}
	}
	begin := func(n int) {
		if err := holder.Begin(t.Context(), func(ctx context.Context) (messages.Operation, ledger.Step, error) {
			return holder.BeginTakeover(ctx, takeover(n))
		}); err != nil {
			t.Fatal(err)
		}
	}
	begin(0)
	n := 0
	over := &reading{Backend: w.backend, before: func(key string) {
		if key == ledger.OperationKey(name("t", n)) && n < 4 {
			if _, err := holder.Run(t.Context(), name("t", n)); err != nil {
				t.Fatal(err)
			}
			n++
			begin(n)
		}
	}}
	records := ledger.NewBarrier(ledger.NewStore(over, brisk), ledger.Options{Now: w.now})
	if _, err := records.Land(t.Context(), holder.Lane, func(ctx context.Context) (ledger.Step, error) {
		_, step, err := records.BeginRetirement(ctx, messages.AskRetirement{UID: w.uid, By: "x"})
		return step, err
	}); err != nil || n != 4 {
		t.Fatalf("after %d takeovers: %v", n, err)
	}
	if head := w.authority("p").Head; head.State != messages.HeadRetiring || head.Epoch != 5 {
		t.Errorf("the head is %+v", head)
	}
	w.holds()
}

// TestWhatIsDoneMeanwhileIsDone commits an operation between the reads of another
// commit of it.
func TestWhatIsDoneMeanwhileIsDone(t *testing.T) {
	for _, kind := range []messages.OperationKind{messages.Takeover, messages.Retirement} {
		w := freshWorld(t)
		w.put("p", "")
		w.enrol()
		holder := w.holder(w.backend)
		id := ledger.OperationOf(w.uid)
		first := func(ctx context.Context) (messages.Operation, ledger.Step, error) {
			return holder.BeginRetirement(ctx, messages.AskRetirement{UID: w.uid, By: "x"})
		}
		if kind == messages.Takeover {
			id = names.NewUID()
			first = func(ctx context.Context) (messages.Operation, ledger.Step, error) {
				return holder.BeginTakeover(ctx, messages.BeginTakeover{ID: id, Principal: principal("p"), UID: w.uid, By: "x"})
			}
		}
		if err := holder.Begin(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		op, _ := holder.Operation(t.Context(), id)
		for last := map[messages.OperationKind]messages.OperationStep{messages.Takeover: messages.StepEvicted, messages.Retirement: messages.StepDrained}[kind]; op.Step != last; {
			if err := holder.Next(t.Context(), op); err != nil {
				t.Fatal(err)
			}
			op, _ = holder.Operation(t.Context(), id)
		}
		over := &reading{Backend: w.backend, before: func(key string) {
			if key == ledger.HeadKey(principal("p")) {
				if _, err := holder.Run(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
		}}
		records := ledger.NewBarrier(ledger.NewStore(over, brisk), ledger.Options{Now: w.now})
		commit := records.CommitTakeover
		if kind == messages.Retirement {
			commit = func(ctx context.Context, op messages.Operation) (ledger.Step, error) {
				return records.CommitRetirement(ctx, op, nil)
			}
		}
		if step, err := commit(t.Context(), op); err != nil || !step.Empty() {
			t.Errorf("%s: %+v, %v", kind, step, err)
		}
		w.holds()
	}
}

// old is a leader that has only the grant, as it stands.
func old(t *testing.T, w *world) ledger.Backend {
	b := memory.New()
	row, _, _ := w.backend.Get(t.Context(), ledger.GrantKey(principal("p")))
	if _, err := b.Send(t.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Create(row.Key, row.Value)}}); err != nil {
		t.Fatal(err)
	}
	return b
}
