package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Lane writes for the barriers, one batch after another. Each batch holds the row of
// what is owed, and lands only while the plane is still this holder's.
//
// What is owed is not pinned to its own past, since its one condition is the claim.
// Its order is kept here: one batch at a time, none before the last one's outcome is
// certain, and in each at least one other row that is pinned to its own past, so
// that a copy of a batch which a slow network delivers again lands nothing.
type Lane struct {
	held *Held
	turn chan struct{} // held by whoever writes

	// Under the turn.
	read  bool
	owed  messages.Owed
	value []byte // of the owed row as this lane wrote it last; nil before
	doubt *ledger.Batch
}

// Step is one transition of a barrier.
type Step struct {
	// Writes are the rows of the transition, without the owed one. At least one is
	// pinned to its own past: it is created, or replaces what was read.
	Writes []ledger.Write
	// Begin and Done are operations that this step adds to what is owed, and removes.
	Begin, Done []string
}

// Owed is what the plane has begun and not done: at first what former holders left
// behind, later what this lane wrote. It fails as Guard does.
func (l *Lane) Owed(ctx context.Context) (messages.Owed, error) {
	leave, err := l.enter(ctx)
	if err != nil {
		return messages.Owed{}, err
	}
	defer leave()
	return messages.Owed{Ops: slices.Clone(l.owed.Ops)}, nil
}

// Write lands a step whole and returns the revision of its last row of Writes, the
// others having those before it; or it lands nothing and fails with:
//
//   - ledger.ErrLost: a row has moved, and the plane is still ours: read again.
//   - messages.ClaimLost: the plane is another's. It fences.
//   - messages.ClaimFenced, ClaimReleased: nothing was sent.
//   - messages.Contended, BrokerAway: not now.
//
// With messages.OutcomeUnknown, when ctx ended too early, it may have landed; the
// next call finds out before it writes.
func (l *Lane) Write(ctx context.Context, step Step) (uint64, error) {
	if !slices.ContainsFunc(step.Writes, func(w ledger.Write) bool { return w.Pin.Key == "" }) {
		return 0, messages.InternalFault.Because("a barrier's batch pins no row to its own past")
	}
	leave, err := l.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	next := l.owed.Ops
	for _, op := range step.Begin {
		if at, found := slices.BinarySearch(next, op); !found {
			next = slices.Insert(slices.Clone(next), at, op)
		}
	}
	next = slices.DeleteFunc(slices.Clone(next), func(op string) bool { return slices.Contains(step.Done, op) })
	value, err := ledger.EncodeOwed(messages.Owed{Ops: next}, l.held.newID())
	if err != nil {
		return 0, err
	}
	last, err := l.apply(ctx, ledger.Batch{
		Writes:  append([]ledger.Write{ledger.Fenced(ledger.OwedKey, value, l.held.Pin())}, step.Writes...),
		Witness: ledger.OwedKey,
	})
	if err != nil {
		return 0, fmt.Errorf("write for the plane: %w", err)
	}
	return last, nil
}

// enter waits for the turn, and then makes sure that the outcome of everything
// written before is certain and that what is owed is known.
func (l *Lane) enter(ctx context.Context) (leave func(), err error) {
	if err := l.held.usable(); err != nil {
		return nil, err
	}
	select {
	case l.turn <- struct{}{}:
		leave = func() { <-l.turn }
	case <-ctx.Done():
		return nil, messages.Contended.From(ctx.Err())
	}
	if err = l.settle(ctx); err == nil {
		err = l.load(ctx)
	}
	if err == nil {
		err = l.held.usable() // it may have been fenced while we waited
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// settle sends a batch again whose outcome is not known.
func (l *Lane) settle(ctx context.Context) error {
	if l.doubt == nil {
		return nil
	}
	_, err := l.apply(ctx, *l.doubt)
	if errors.Is(err, ledger.ErrLost) {
		return nil // it never landed, and never will
	}
	return err
}

// load reads what former holders left, once. Their last batch landed before our
// claim or never will.
func (l *Lane) load(ctx context.Context) error {
	if l.read {
		return nil
	}
	if err := l.held.Guard(ctx); err != nil {
		return err
	}
	row, found, err := l.held.store.Get(ctx, ledger.OwedKey)
	if err != nil {
		return err
	}
	if found {
		if l.owed, err = ledger.DecodeOwed(row); err != nil {
			return err
		}
	}
	l.read, l.value = true, row.Value
	return nil
}

// apply lands a batch whose first row is what is owed, and keeps what it means.
func (l *Lane) apply(ctx context.Context, b ledger.Batch) (uint64, error) {
	last, err := l.held.store.Apply(ctx, b)
	if errors.Is(err, ledger.ErrLost) {
		err = l.explain(ctx, b, err)
	}
	switch {
	case err == nil:
		l.doubt = nil
		return last, l.keep(b)
	case errors.Is(err, messages.OutcomeUnknown):
		l.doubt = &b
	default:
		l.doubt = nil
	}
	return 0, err
}

// keep remembers what is owed once b has landed.
func (l *Lane) keep(b ledger.Batch) error {
	owed, err := ledger.DecodeOwed(ledger.Row{Key: ledger.OwedKey, Value: b.Writes[0].Value})
	if err == nil {
		l.owed, l.value = owed, b.Writes[0].Value
	}
	return err
}

// explain finds out why a batch was lost: with the plane still ours, one of its own
// rows has moved, and it is certain that it did not land.
func (l *Lane) explain(ctx context.Context, b ledger.Batch, lost error) error {
	err := l.held.Guard(ctx)
	if err == nil {
		return ledger.ErrLost
	}
	if errors.Is(err, messages.BrokerAway) && errors.Is(lost, ledger.ErrOvertaken) {
		return messages.OutcomeUnknown.From(err)
	}
	return err
}
