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

// Unask forgets that this process asked for retirements which are begun or done by
// now; of others it goes on asking. Where nothing is to be forgotten, nothing is
// written.
func (w *Writer) Unask(ctx context.Context, ask messages.Unask) (messages.Unasked, error) {
	return messages.Unasked{}, w.transition(ctx, func(ctx context.Context) error {
		_, err := w.ends.travel(ctx, &passenger{look: func(ctx context.Context) (wish, error) {
			met, err := w.met(ctx, ask.UIDs)
			return wish{unask: met}, err
		}})
		return err
	})
}

// met are those of incarnations whose retirement this process asks for, and has begun.
// One that has is owed until it is done: its record goes with both. What cannot be read
// is asked for further, and keeps no other from being forgotten.
func (w *Writer) met(ctx context.Context, uids []string) ([]string, error) {
	asked, _, err := askedAt(ctx, w.store, w.Instance)
	if err != nil {
		return nil, err
	}
	var keys []Row
	for _, uid := range asked.UIDs {
		if slices.Contains(uids, uid) {
			keys = append(keys, Row{Key: uid})
		}
	}
	begun, err := eachRow(ctx, keys, func(ctx context.Context, uid Row) (bool, error) {
		_, found, err := w.store.Get(ctx, OperationKey(OperationOf(uid.Key)))
		if errors.Is(err, messages.RowCorrupt) {
			return false, nil
		}
		return found, err
	})
	var met []string
	for i, uid := range keys {
		if err == nil && begun[i] {
			met = append(met, uid.Key)
		}
	}
	return met, err
}
