package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// counted is a source that counts its reads.
type counted struct {
	ledger.Backend
	reads int
}

func (c *counted) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	c.reads++
	return c.Backend.Get(ctx, key)
}

func (c *counted) List(ctx context.Context, filter string) ([]string, error) {
	c.reads++
	return c.Backend.List(ctx, filter)
}

// What is over costs nothing any more: however many operations are done, none is read.
func TestOnlyWhatIsOwedIsRead(t *testing.T) {
	w := lived(t)
	holder := w.holder(w.backend)
	for range 200 {
		if _, err := holder.Takeover(t.Context(), messages.BeginTakeover{ID: names.NewUID(), Principal: principal("p"), UID: w.uid, By: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	source := &counted{Backend: w.backend}
	if owed, err := ledger.Owed(t.Context(), source); err != nil || len(owed) != 0 || source.reads != 1 {
		t.Errorf("owed are %v, %v, after %d reads", owed, err, source.reads)
	}
}

// An operation, or what a process asks for, that cannot be read hides no other.
func TestOneUnreadableDebtHidesNoOther(t *testing.T) {
	for name, damage := range damages() {
		w := freshWorld(t)
		holder := w.holder(w.backend)
		var ids, uids []string
		for i := range 3 {
			actor := fmt.Sprint("p", i)
			made, err := w.steady().PutGrant(t.Context(), put(actor, ""))
			if err == nil {
				_, err = w.steady().Enrol(t.Context(), messages.Enrol{Principal: made.Principal, UID: made.UID})
			}
			writer := ledger.NewWriter(ledger.NewStore(w.backend, brisk), ledger.Options{Instance: fmt.Sprint("i", i), Now: w.now})
			if err == nil {
				_, err = writer.AskRetirement(t.Context(), messages.AskRetirement{Principal: made.Principal, By: "x"})
			}
			if err == nil {
				err = holder.Begin(t.Context(), func(ctx context.Context) (messages.Operation, ledger.Step, error) {
					return holder.BeginRetirement(ctx, messages.AskRetirement{UID: made.UID})
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			ids, uids = append(ids, ledger.OperationOf(made.UID)), append(uids, made.UID)
		}
		damage(w, ledger.OperationKey(ids[1]))
		damage(w, ledger.AskedKey("i1"))
		owed, err := ledger.Owed(t.Context(), w.backend)
		var read []string
		for _, op := range owed {
			read = append(read, op.ID)
		}
		want := []string{ids[0], ids[2]}
		slices.Sort(want)
		if !errors.Is(err, messages.RowCorrupt) || !slices.Equal(ledger.CorruptKeys(err), []string{ledger.OperationKey(ids[1])}) || !slices.Equal(read, want) {
			t.Errorf("%s: owed are %v, %v", name, read, err)
		}
		asked, err := ledger.Asked(t.Context(), w.backend)
		want = []string{uids[0], uids[2]}
		slices.Sort(want)
		if !slices.Equal(ledger.CorruptKeys(err), []string{ledger.AskedKey("i1")}) || !slices.Equal(asked, want) {
			t.Errorf("%s: asked for are %v, %v", name, asked, err)
		}
		for _, id := range want {
			if _, err := holder.Retire(t.Context(), id); err != nil {
				t.Errorf("%s: another cannot be retired: %v", name, err)
			}
		}
		if _, err := holder.Run(t.Context(), ids[1]); !errors.Is(err, messages.RowCorrupt) {
			t.Errorf("%s: it was run: %v", name, err)
		}
	}
}

// Somebody's retirement has one id, in the grammar of operations, and nobody else's.
func TestTheIdOfARetirement(t *testing.T) {
	ids := map[string]bool{}
	for range 100 {
		incarnation := names.NewUID()
		id := ledger.OperationOf(incarnation)
		if names.CheckUID(id) != nil || id != ledger.OperationOf(incarnation) || ids[id] {
			t.Errorf("%s is retired by %s", incarnation, id)
		}
		ids[id] = true
	}
	if got := ledger.OperationOf(uid); got != "r9adc3e08b7ceb5e1562a72bc00ee108" {
		t.Errorf("it is %s", got) // whatever stands in a ledger hangs on it
	}
}
