package ledger

import (
	"context"
	"errors"
	"slices"

	"github.com/cotal-ai/authplane/messages"
)

// askedAt is what a process asks for, as it was found.
func askedAt(ctx context.Context, source Source, instance string) (Asking, Row, error) {
	row, found, err := source.Get(ctx, AskedKey(instance))
	if err != nil || !found {
		return Asking{Instance: instance}, Row{Key: AskedKey(instance)}, err
	}
	asked, err := DecodeAsked(row)
	return asked, row, err
}

// ask adds an incarnation to what this process asks to be retired; the zero Write if
// it is among them.
func (w *Writer) ask(ctx context.Context, uid, witness string) (Write, error) {
	asked, row, err := askedAt(ctx, w.store, w.Instance)
	if err != nil {
		return Write{}, err
	}
	i, found := slices.BinarySearch(asked.UIDs, uid)
	if found {
		return Write{}, nil
	}
	asked.UIDs = slices.Insert(asked.UIDs, i, uid)
	value, err := EncodeAsked(asked, witness)
	return Replace(row, value), err
}

// Unask forgets that this process asked for retirements which are begun or done by
// now; of others it goes on asking. Where nothing is to be forgotten, nothing is
// written.
func (w *Writer) Unask(ctx context.Context, ask messages.Unask) (messages.Unasked, error) {
	leave, err := w.endings.enter(ctx, messages.Principal{})
	if err != nil {
		return messages.Unasked{}, err
	}
	defer leave()
	witness := w.NewUID()
	return messages.Unasked{}, w.transition(ctx, func(ctx context.Context) error {
		asked, row, err := askedAt(ctx, w.store, w.Instance)
		if err != nil {
			return err
		}
		var left []string
		for _, uid := range asked.UIDs {
			needed := true
			if slices.Contains(ask.UIDs, uid) {
				if needed, err = w.unmet(ctx, uid); err != nil {
					return err
				}
			}
			if needed {
				left = append(left, uid)
			}
		}
		if len(left) == len(asked.UIDs) {
			return nil
		}
		value, err := EncodeAsked(Asking{Instance: w.Instance, UIDs: left}, witness)
		if err != nil {
			return err
		}
		_, err = w.store.Apply(ctx, Batch{Writes: []Write{Replace(row, value)}, Witness: row.Key})
		return err
	})
}

// unmet reports whether a retirement has not begun. One that has is owed until it is
// done: its record goes with both. What cannot be read is asked for further, and
// keeps no other from being forgotten.
func (w *Writer) unmet(ctx context.Context, uid string) (bool, error) {
	_, found, err := w.store.Get(ctx, OperationKey(OperationOf(uid)))
	if errors.Is(err, messages.RowCorrupt) {
		return true, nil
	}
	return !found, err
}
