package ledger

import (
	"context"
	"errors"

	"slices"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Barrier says what the holder of the plane is to write for takeovers and
// retirements. It writes nothing itself: each method reads what stands and returns
// the step that follows from it, empty when that is done already. When the lane
// answers ErrLost a row has moved meanwhile, and the method is called again; Land
// does that. Whatever was touched or renewed in between changes nothing but the
// revisions: no step rests on anything that is not in its pins.
//
// Besides the refusals each method names, every one may fail with
// messages.Malformed, BrokerAway and RowCorrupt. A refusal rests on what a proved
// leader holds.
//
// It is safe for concurrent use.
type Barrier struct {
	store *Store
	clock func() time.Time
	newID func() string
}

// NewBarrier reads from store. Of options it takes the clock and NewUID, for the
// random part of what is written.
func NewBarrier(store *Store, options Options) *Barrier {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.NewUID == nil {
		options.NewUID = names.NewUID
	}
	return &Barrier{store: store, clock: options.Now, newID: options.NewUID}
}

// now is the clock in the whole milliseconds that rows hold.
func (b *Barrier) now() time.Time { return instant(millis(b.clock())) }

// Land has a step made and lands it in lane, and has it made anew each time that a
// row has moved. It returns the revision of the step's last row; 0 if there was
// nothing to write. It fails as step does, and as the lane; with messages.Contended
// when others were faster for too long.
func (b *Barrier) Land(ctx context.Context, lane Lane, step func(context.Context) (Step, error)) (uint64, error) {
	var last uint64
	err := b.store.decide(ctx, func(ctx context.Context) error {
		made, err := step(ctx)
		if err != nil || made.Empty() {
			return err
		}
		last, err = lane.Write(ctx, made)
		return err
	})
	return last, err
}

// decided looks until it is decided: again when a row moved between two reads, and
// once more under a proved leader before it refuses.
func (b *Barrier) decided(ctx context.Context, look func(context.Context) error) error {
	for proved := false; ; {
		err := look(ctx)
		switch {
		case errors.Is(err, ErrLost):
			proved = false
		case err == nil || proved || messages.Describe(err).Retryable:
			return err
		default:
			if err := b.store.Sync(ctx); err != nil {
				return err
			}
			proved = true
		}
	}
}

// step is decided for what only makes a step.
func (b *Barrier) step(ctx context.Context, look func(context.Context) (Step, error)) (step Step, err error) {
	err = b.decided(ctx, func(ctx context.Context) error {
		step, err = look(ctx)
		return err
	})
	return step, err
}

// Operation reads an operation, done or not; refused with messages.OperationNotFound.
func (b *Barrier) Operation(ctx context.Context, id string) (op messages.Operation, err error) {
	err = b.decided(ctx, func(ctx context.Context) error {
		op, err = readOperation(ctx, b.store, id)
		return err
	})
	return op, err
}

// Frozen is the write that shut the gate of an operation which is not over: an
// enumeration counts only if it has seen it, since nothing was issued after.
// Refused with messages.IncarnationEnded when the operation is over.
func (b *Barrier) Frozen(ctx context.Context, op messages.Operation) (at Milestone, err error) {
	err = b.decided(ctx, func(ctx context.Context) error {
		found, err := b.find(ctx, op.ID)
		if err != nil {
			return err
		}
		if over(found.Step) {
			return messages.IncarnationEnded.Because("the %s is %s", found.Kind, found.Step)
		}
		head, err := b.held(ctx, found.Operation)
		at = Milestone{Key: head.row.Key, Revision: head.row.Revision}
		return err
	})
	return at, err
}

// work is an operation as a step found it.
type work struct {
	messages.Operation
	row   Row
	found bool
}

func (b *Barrier) operationAt(ctx context.Context, id string) (work, error) {
	row, found, err := b.store.Get(ctx, OperationKey(id))
	if err != nil || !found {
		return work{row: Row{Key: OperationKey(id)}}, err
	}
	op, err := DecodeOperation(row)
	return work{Operation: op, row: row, found: true}, err
}

// find is operationAt for what must be there.
func (b *Barrier) find(ctx context.Context, id string) (work, error) {
	if err := names.CheckUID(id); err != nil {
		return work{}, err
	}
	found, err := b.operationAt(ctx, id)
	if err == nil && !found.found {
		err = messages.OperationNotFound
	}
	return found, err
}

// held reads the head that an operation holds shut. While an operation is not over
// nobody else can have it; one that has ended since it was read is over when it is
// looked at again, as decided does before anything is called corrupt.
func (b *Barrier) held(ctx context.Context, op messages.Operation) (life, error) {
	head, err := headAt(ctx, b.store, op.Principal)
	if err == nil && (!head.found || head.UID != op.UID || head.Operation != refOf(op)) {
		err = corrupt(HeadKey(op.Principal), "operation "+op.ID+" is not over, and does not hold it")
	}
	return head, err
}

func refOf(op messages.Operation) messages.OperationRef {
	return messages.OperationRef{ID: op.ID, Kind: string(op.Kind)}
}

// write encodes an operation as it is to stand over what was found.
func (b *Barrier) write(before work, after messages.Operation) (Write, error) {
	value, err := EncodeOperation(after, b.newID())
	return Replace(before.row, value), err
}

// Advance records that an operation has come to the step to, with what op says of
// its outcome. A step that is recorded already, or a later one, is left as it is.
// Steps are recorded in their order, none is left out; the last one is a commit.
// Refused with messages.OperationNotFound, and with IncarnationEnded when a
// retirement has superseded the takeover.
func (b *Barrier) Advance(ctx context.Context, op messages.Operation, to messages.OperationStep) (Step, error) {
	return b.step(ctx, func(ctx context.Context) (Step, error) { return b.advance(ctx, op, to) })
}

func (b *Barrier) advance(ctx context.Context, op messages.Operation, to messages.OperationStep) (Step, error) {
	found, err := b.find(ctx, op.ID)
	if err != nil {
		return Step{}, err
	}
	steps := stepsOf(found.Kind)
	now, next := slices.Index(steps, found.Step), slices.Index(steps, to)
	switch {
	case found.Step == messages.StepSuperseded:
		return Step{}, errSuperseded
	case to == messages.StepDone || next < 0 || next > now+1:
		return Step{}, messages.InternalFault.Because("a %s does not go from %s to %s", found.Kind, found.Step, to)
	case next <= now:
		return Step{}, nil
	}
	after := found.Operation
	after.Step, after.Outcome = to, op.Outcome
	write, err := b.write(found, after)
	return Step{Writes: []Write{write}}, err
}

var errSuperseded = messages.IncarnationEnded.Because("a retirement superseded the takeover")

// revoked is a grant as its revocation leaves it.
func revoked(g messages.Grant, by string, at time.Time) messages.Grant {
	g.State, g.By, g.At = messages.GrantRevoked, by, at
	g.Revision++
	return g
}

// readOperation reads an operation by its id.
func readOperation(ctx context.Context, source Source, id string) (messages.Operation, error) {
	if err := names.CheckUID(id); err != nil {
		return messages.Operation{}, err
	}
	row, found, err := source.Get(ctx, OperationKey(id))
	if err == nil && !found {
		err = messages.OperationNotFound
	}
	if err != nil {
		return messages.Operation{}, err
	}
	return DecodeOperation(row)
}
