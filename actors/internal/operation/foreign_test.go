package operation_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/operation"
	"github.com/cotal-ai/authplane/messages"
)

// overwrite puts a value in the place of a row, as nobody of ours would.
func (w *world) overwrite(key string, value []byte) (before []byte) {
	w.Helper()
	store := ledger.NewStore(w.backend, brisk)
	row, _, err := store.Get(w.Context(), key)
	w.must(err)
	_, err = store.Apply(w.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, value)}})
	w.must(err)
	return row.Value
}

// An operation whose head was changed by hand goes no further and ends nobody, says so,
// and goes on once the head is what it was.
func TestAHeadThatWasChangedByHand(t *testing.T) {
	spoils := map[string]func(messages.Head) messages.Head{
		"retired": func(h messages.Head) messages.Head {
			h.State, h.Operation, h.Root = messages.HeadRetired, messages.OperationRef{}, messages.Root{}
			return h
		},
		"opened": func(h messages.Head) messages.Head {
			h.State, h.Operation = messages.HeadActive, messages.OperationRef{}
			return h
		},
		"another operation's": func(h messages.Head) messages.Head {
			h.Operation.ID = "oooooooooooooooooooooooooooo"
			return h
		},
		"another life's": func(h messages.Head) messages.Head {
			h.UID = "vvvvvvvvvvvvvvvvvvvvvvvvvvvv"
			return h
		},
	}
	for _, kind := range []messages.OperationKind{messages.Takeover, messages.Retirement} {
		w := newWorld(t)
		p, err := w.boot(t.Context(), w.backend)
		w.must(err)
		id, err := p.begin(t.Context(), kind)
		w.must(err)
		key := ledger.HeadKey(laptop)
		for name, spoil := range spoils {
			value, err := ledger.EncodeHead(spoil(w.head()))
			w.must(err)
			sound := w.overwrite(key, value)
			op, err := operation.Run(t.Context(), p.ports(), id)
			if !errors.Is(err, messages.RowCorrupt) || op.ID != id || op.Step != messages.StepBegun {
				t.Errorf("%s, %s: %v at %s", kind, name, err, op.Step)
			}
			if stands := w.overwrite(key, sound); !bytes.Equal(stands, value) || w.evicted > 0 || w.active() != issued {
				t.Errorf("%s, %s: evicted %d, %d are active, the head is %s", kind, name, w.evicted, w.active(), stands)
			}
			if owed, err := p.held.Lane().Owed(t.Context()); err != nil || len(owed.Ops) != 1 {
				t.Errorf("%s, %s: owed are %v, %v", kind, name, owed, err)
			}
		}
		op, err := operation.Run(t.Context(), p.ports(), id)
		w.must(err)
		w.check(op, kind)
	}
}

// meddler changes a head by hand as soon as everybody is evicted.
type meddler struct {
	operation.Evictor
	meddle func()
}

func (m meddler) Evict(ctx context.Context, op messages.Operation, denied time.Time) (operation.Evicted, error) {
	evicted, err := m.Evictor.Evict(ctx, op, denied)
	m.meddle()
	return evicted, err
}

// What is changed by hand right before the end keeps it from being committed over.
func TestAHeadThatWasChangedBeforeTheCommit(t *testing.T) {
	for _, kind := range []messages.OperationKind{messages.Takeover, messages.Retirement} {
		w := newWorld(t)
		p, err := w.boot(t.Context(), w.backend)
		w.must(err)
		id, err := p.begin(t.Context(), kind)
		w.must(err)
		head := w.head()
		head.State, head.Operation, head.Root = messages.HeadRetired, messages.OperationRef{}, messages.Root{}
		value, err := ledger.EncodeHead(head)
		w.must(err)
		var sound []byte
		ports := p.ports()
		ports.Evictor = meddler{ports.Evictor, func() { sound = w.overwrite(ledger.HeadKey(laptop), value) }}
		op, err := operation.Run(t.Context(), ports, id)
		if !errors.Is(err, messages.RowCorrupt) || op.Step == messages.StepDone || op.Step == messages.StepBegun {
			t.Errorf("%s: %v at %s", kind, err, op.Step)
		}
		if stands := w.overwrite(ledger.HeadKey(laptop), sound); !bytes.Equal(stands, value) {
			t.Errorf("%s: the head was written over: %s", kind, stands)
		}
		op, err = operation.Run(t.Context(), p.ports(), id)
		w.must(err)
		w.check(op, kind)
		if w.evicted != 1 {
			t.Errorf("%s: evicted %d times", kind, w.evicted)
		}
	}
}
