package claim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Lane writes for the barriers, one batch after another. Each batch holds the row of
// what is owed, and lands only while the plane is still this holder's. Steps that come
// while a batch is under way travel together in the next one.
//
// What is owed is not pinned to its own past, since its one condition is the claim.
// Its order is kept here: one batch at a time, none before the last one's outcome is
// certain, and in each at least one other row that is pinned to its own past, so
// that a copy of a batch which a slow network delivers again lands nothing.
type Lane struct {
	held *Held
	turn chan struct{} // held by whoever writes: capacity 1

	mu      sync.Mutex
	waiting []*parcel // in the order in which they came

	// Under the turn.
	loaded bool
	owed   messages.Owed
	// doubt is a batch of which it is not known whether it landed; it may land yet.
	doubt *ledger.Batch
}

// Step is one transition of a barrier.
type Step = ledger.Step

// Owed is what the plane has begun and not done: at first what former holders left
// behind, later what this lane wrote. It fails as Guard does.
func (l *Lane) Owed(ctx context.Context) (messages.Owed, error) {
	leave, err := l.enterFor(ctx, &parcel{})
	if err != nil {
		return messages.Owed{}, fmt.Errorf("read what is owed: %w", err)
	}
	defer leave()
	return messages.Owed{Ops: slices.Clone(l.owed.Ops)}, nil
}

// Write lands a step whole and returns the revision of its last row of Writes, the
// others having those before it; or it lands nothing and fails with:
//
//   - ledger.ErrLost: a row has moved, and the plane is still ours: read again.
//   - messages.ClaimLost: the plane is another's, which fences. What was sent may have
//     landed before; it is the successor's to go on with.
//   - messages.ClaimFenced, ClaimReleased: likewise, or nothing was sent.
//   - messages.Contended, BrokerAway: not now.
//
// With messages.OutcomeUnknown, when ctx ended too early, it may have landed; the
// next call finds out before it writes.
func (l *Lane) Write(ctx context.Context, step Step) (uint64, error) {
	if !slices.ContainsFunc(step.Writes, func(w ledger.Write) bool { return w.Pin.Key == "" }) {
		return 0, messages.InternalFault.Because("a barrier's batch pins no row to its own past")
	}
	last, err := l.write(ctx, step)
	if err != nil {
		return 0, fmt.Errorf("write for the plane: %w", err)
	}
	return last, nil
}

func (l *Lane) write(ctx context.Context, step Step) (uint64, error) {
	mine := l.queue(ctx, step)
	leave, err := l.enterFor(ctx, mine)
	if err != nil {
		if l.withdraw(mine) {
			return 0, err
		}
		return mine.outcome(ctx)
	}
	if leave != nil { // nobody has sent it
		l.land(l.take(mine))
		leave()
	}
	return mine.outcome(ctx)
}

// send lands steps as one batch.
func (l *Lane) send(ctx context.Context, steps []*parcel) (uint64, error) {
	all := merged(steps)
	value, err := ledger.EncodeOwed(l.after(all), l.held.newID())
	if err != nil {
		return 0, err
	}
	return l.apply(ctx, ledger.Batch{
		Writes:  append([]ledger.Write{ledger.Fenced(ledger.OwedKey, value, l.held.Pin())}, all.Writes...),
		Witness: ledger.OwedKey, // it holds something random
	})
}

// after is what is owed once step has landed.
func (l *Lane) after(step Step) messages.Owed {
	ops := slices.Concat(l.owed.Ops, step.Begin)
	ops = slices.DeleteFunc(ops, func(op string) bool { return slices.Contains(step.Done, op) })
	slices.Sort(ops)
	return messages.Owed{Ops: slices.Compact(ops)}
}

// enterFor waits for the turn, and then makes sure that the outcome of everything
// written before is certain and that what is owed is known. leave is nil if somebody
// else has sent the parcel meanwhile.
func (l *Lane) enterFor(ctx context.Context, mine *parcel) (leave func(), err error) {
	select {
	case l.turn <- struct{}{}:
		leave = func() { <-l.turn }
	case <-mine.done:
		return nil, nil
	case <-ctx.Done():
		return nil, messages.Contended.From(ctx.Err())
	}
	if mine.isDone() {
		leave()
		return nil, nil
	}
	if err = l.held.usable(); err == nil {
		err = l.settle(ctx)
	}
	if err == nil {
		err = l.load(ctx)
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// settle sends a batch again whose outcome is not known, until it is.
func (l *Lane) settle(ctx context.Context) error {
	if l.doubt == nil {
		return nil
	}
	if _, err := l.apply(ctx, *l.doubt); !errors.Is(err, ledger.ErrLost) {
		return err
	}
	return nil // it did not land, and never will
}

// load reads what former holders left, once. Their last batch landed before our
// claim or never will; and with the plane ours after the read, it is not yet a
// successor's.
func (l *Lane) load(ctx context.Context) error {
	if l.loaded {
		return nil
	}
	if err := l.held.store.Sync(ctx); err != nil {
		return err
	}
	row, found, err := l.held.store.Get(ctx, ledger.OwedKey)
	if err != nil {
		return err
	}
	if err := l.held.Guard(ctx); err != nil {
		return err
	}
	if found {
		if l.owed, err = ledger.DecodeOwed(row); err != nil {
			return err
		}
	}
	l.loaded = true
	return nil
}

// apply lands a batch whose first row is what is owed, and keeps what that means.
func (l *Lane) apply(ctx context.Context, b ledger.Batch) (uint64, error) {
	doubted := l.doubt != nil
	last, err := l.held.store.Apply(ctx, b)
	if errors.Is(err, ledger.ErrLost) {
		last, err = l.explain(ctx, b, doubted || errors.Is(err, ledger.ErrOvertaken))
	}
	switch {
	case err == nil:
		l.doubt = nil
		return last, l.keep(b)
	case errors.Is(err, messages.OutcomeUnknown), doubted && !errors.Is(err, ledger.ErrLost):
		l.doubt = &b
	default:
		l.doubt = nil
	}
	return 0, err
}

// keep remembers what is owed once b has landed.
func (l *Lane) keep(b ledger.Batch) (err error) {
	l.owed, err = ledger.DecodeOwed(ledger.Row{Key: ledger.OwedKey, Value: b.Writes[0].Value})
	return err
}

// explain finds out why the stream will not have a batch. If the plane is another's,
// that is why. While it is ours, nobody else writes what is owed, so that row tells
// whether an earlier copy of the batch has landed; only if there was none is
// nothing left to doubt without an answer.
func (l *Lane) explain(ctx context.Context, b ledger.Batch, doubted bool) (uint64, error) {
	err := l.held.stands(ctx)
	if err == nil && !doubted {
		return 0, ledger.ErrLost
	}
	var row ledger.Row
	if err == nil {
		row, _, err = l.held.store.Get(ctx, ledger.OwedKey)
	}
	switch {
	case err == nil && bytes.Equal(row.Value, b.Writes[0].Value):
		return row.Revision + uint64(len(b.Writes)-1), nil
	case err == nil:
		return 0, ledger.ErrLost
	case doubted && messages.Describe(err).Retryable:
		return 0, messages.OutcomeUnknown.From(err)
	default:
		return 0, err
	}
}
