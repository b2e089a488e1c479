package ledger

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// Operation reads an operation by its id, whether it is done or not; refused with
// messages.OperationNotFound.
func (r *Reader) Operation(ctx context.Context, ask messages.ReadOperation) (messages.Operation, error) {
	return readOperation(ctx, r.source, ask.ID)
}

// Owed reads what is begun and not done, whoever holds the plane.
func (r *Reader) Owed(ctx context.Context) (messages.Owed, error) {
	row, found, err := r.source.Get(ctx, OwedKey)
	if err != nil || !found {
		return messages.Owed{}, err
	}
	return DecodeOwed(row)
}

// Operations reads operations by their ids, in the order in which they began. Rows
// that are corrupt or missing keep nobody from the others: their keys are unreadable.
func (r *Reader) Operations(ctx context.Context, ids []string) (found []messages.Operation, unreadable []string, err error) {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = OperationKey(id)
	}
	found, unreadable, err = readEach(ctx, r.source, keys, DecodeOperation)
	slices.SortFunc(found, func(a, b messages.Operation) int {
		if by := a.Began.Compare(b.Began); by != 0 {
			return by
		}
		return strings.Compare(a.ID, b.ID)
	})
	return found, unreadable, err
}

// Asked reads what every process asks to be retired, also those that have ended.
// Rows that are corrupt keep nobody from the others: their keys are unreadable.
func (r *Reader) Asked(ctx context.Context) (found []Asked, unreadable []string, err error) {
	keys, err := r.source.List(ctx, AllAsked)
	if err != nil {
		return nil, nil, err
	}
	return readEach(ctx, r.source, keys, DecodeAsked)
}

// Roster reads the names of the servers that were ever met.
func (r *Reader) Roster(ctx context.Context) (messages.KnownServers, error) {
	names, _, err := rosterAt(ctx, r.source)
	return messages.KnownServers{Names: names}, err
}

// readEach reads rows that must be there, and names those that cannot be read.
func readEach[V any](ctx context.Context, source Source, keys []string, decode func(Row) (V, error)) (found []V, unreadable []string, err error) {
	type read struct {
		value  V
		damage bool
	}
	rows := make([]Row, len(keys))
	for i, key := range keys {
		rows[i].Key = key
	}
	all, err := eachRow(ctx, rows, func(ctx context.Context, row Row) (read, error) {
		row, there, err := source.Get(ctx, row.Key)
		if err == nil && !there {
			return read{damage: true}, nil
		}
		var value V
		if err == nil {
			value, err = decode(row)
		}
		if errors.Is(err, messages.RowCorrupt) {
			return read{damage: true}, nil
		}
		return read{value: value}, err
	})
	if err != nil {
		return nil, nil, err
	}
	for i, r := range all {
		if r.damage {
			unreadable = append(unreadable, keys[i])
		} else {
			found = append(found, r.value)
		}
	}
	return found, unreadable, nil
}
