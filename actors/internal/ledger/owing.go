package ledger

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// Asked are the incarnations that any process asks to be retired, also those whose
// retirement has begun since; sorted, each once. A row that cannot be read hides no
// other: with messages.RowCorrupt, which names it, come those of all others.
func Asked(ctx context.Context, source Source) ([]string, error) {
	keys, err := source.List(ctx, AllAsked)
	if err != nil {
		return nil, err
	}
	all, unreadable, err := readEach(ctx, source, keys, DecodeAsked)
	if err != nil {
		return nil, err
	}
	var uids []string
	for _, asked := range all {
		uids = append(uids, asked.UIDs...)
	}
	slices.Sort(uids)
	return slices.Compact(uids), unreadable
}

// AskedBy are the incarnations that one process asks to be retired, sorted.
func AskedBy(ctx context.Context, source Source, instance string) ([]string, error) {
	asked, _, err := askedAt(ctx, source, instance)
	return asked.UIDs, err
}

// Roster are the names of the servers that were ever met, sorted.
func Roster(ctx context.Context, source Source) ([]string, error) {
	names, _, err := rosterAt(ctx, source)
	return names, err
}

// Owed are the operations that are begun and not over, in the order in which they
// began, whoever holds the plane. A row that cannot be read hides no other: with
// messages.RowCorrupt, which names it, come all others.
func Owed(ctx context.Context, source Source) ([]messages.Operation, error) {
	row, found, err := source.Get(ctx, OwedKey)
	if err != nil || !found {
		return nil, err
	}
	owed, err := DecodeOwed(row)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(owed.Ops))
	for i, id := range owed.Ops {
		keys[i] = OperationKey(id)
	}
	ops, unreadable, err := readEach(ctx, source, keys, DecodeOperation)
	if err != nil {
		return nil, err
	}
	ops = slices.DeleteFunc(ops, func(op messages.Operation) bool { return over(op.Step) }) // since the list was read
	slices.SortFunc(ops, func(a, b messages.Operation) int {
		if by := a.Began.Compare(b.Began); by != 0 {
			return by
		}
		return strings.Compare(a.ID, b.ID)
	})
	return ops, unreadable
}

// Operation reads an operation by its id, whether it is done or not; refused with
// messages.OperationNotFound.
func (r *Reader) Operation(ctx context.Context, ask messages.ReadOperation) (messages.Operation, error) {
	return readOperation(ctx, r.source, ask.ID)
}

// Owed is what Owed reads.
func (r *Reader) Owed(ctx context.Context) ([]messages.Operation, error) { return Owed(ctx, r.source) }

// Roster is what Roster reads.
func (r *Reader) Roster(ctx context.Context) (messages.KnownServers, error) {
	names, err := Roster(ctx, r.source)
	return messages.KnownServers{Names: names}, err
}

// Owed is what Owed reads.
func (b *Barrier) Owed(ctx context.Context) ([]messages.Operation, error) { return Owed(ctx, b.store) }

// readEach reads rows that must be there. Those that are corrupt are no failure, but
// unreadable: what it says of them.
func readEach[V any](ctx context.Context, source Source, keys []string, decode func(Row) (V, error)) (found []V, unreadable, err error) {
	type outcome struct {
		value  V
		damage error
	}
	rows := make([]Row, len(keys))
	for i, key := range keys {
		rows[i].Key = key
	}
	all, err := eachRow(ctx, rows, func(ctx context.Context, row Row) (outcome, error) {
		var value V
		row, err := mustGet(ctx, source, row.Key)
		if err == nil {
			value, err = decode(row)
		}
		if errors.Is(err, messages.RowCorrupt) {
			return outcome{damage: err}, nil
		}
		return outcome{value: value}, err
	})
	if err != nil {
		return nil, nil, err
	}
	for _, o := range all {
		if unreadable = errors.Join(unreadable, o.damage); o.damage == nil {
			found = append(found, o.value)
		}
	}
	return found, unreadable, nil
}
