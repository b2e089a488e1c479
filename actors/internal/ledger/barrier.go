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

// CommitTakeover opens the gate under the next epoch, with nothing issued, once
// everybody is evicted. Nothing is left to write when that was done before. Refused
// with messages.OperationNotFound, and with IncarnationEnded when a retirement has
// superseded the takeover.
func (b *Barrier) CommitTakeover(ctx context.Context, op messages.Operation) (Step, error) {
	return b.step(ctx, func(ctx context.Context) (Step, error) { return b.commitTakeover(ctx, op.ID) })
}

func (b *Barrier) commitTakeover(ctx context.Context, id string) (Step, error) {
	found, head, err := b.ready(ctx, id, messages.Takeover, messages.StepEvicted)
	if err != nil || found.Step == messages.StepDone {
		return Step{}, err
	}
	opened := head.Head
	opened.State, opened.Operation, opened.Root = messages.HeadActive, messages.OperationRef{}, messages.Root{}
	opened.Epoch, opened.Generation = opened.Epoch+1, opened.Generation+1
	done := found.Operation
	done.Step, done.Ended, done.Outcome.Epoch = messages.StepDone, b.now(), opened.Epoch
	return b.commit(found, done, head, opened)
}

// CommitRetirement ends the incarnation for good, once the work it had accepted is
// drained, and records the last sequences of the streams. A grant that is still live
// for it is revoked; one for the next incarnation is left alone. Nothing is left to
// write when that was done before. Refused with messages.OperationNotFound, and with
// OperationConflict when another operation recorded where it ended.
func (b *Barrier) CommitRetirement(ctx context.Context, op messages.Operation, frontiers map[string]uint64) (Step, error) {
	return b.step(ctx, func(ctx context.Context) (Step, error) { return b.commitRetirement(ctx, op.ID, frontiers) })
}

func (b *Barrier) commitRetirement(ctx context.Context, id string, frontiers map[string]uint64) (Step, error) {
	found, head, err := b.ready(ctx, id, messages.Retirement, messages.StepDrained)
	if err != nil || found.Step == messages.StepDone {
		return Step{}, err
	}
	frontier, err := b.frontier(ctx, found.Operation, frontiers)
	if err != nil {
		return Step{}, err
	}
	more := []Write{frontier}
	grant, err := grantAt(ctx, b.store, found.Principal)
	if err != nil {
		return Step{}, err
	}
	if grant.live() && grant.UID == found.UID {
		value, err := EncodeGrant(revoked(grant.Grant, found.By, b.now()), b.newID())
		if err != nil {
			return Step{}, err
		}
		more = append(more, Replace(grant.row, value))
	}
	retired := head.Head
	retired.State, retired.Operation, retired.Root = messages.HeadRetired, messages.OperationRef{}, messages.Root{}
	done := found.Operation
	done.Step, done.Ended, done.Outcome.Frontiers = messages.StepDone, b.now(), frontiers
	return b.commit(found, done, head, retired, more...)
}

// ready reads an operation that is to be committed, and the head that it holds.
func (b *Barrier) ready(ctx context.Context, id string, kind messages.OperationKind, after messages.OperationStep) (work, life, error) {
	found, err := b.find(ctx, id)
	if err != nil {
		return found, life{}, err
	}
	switch {
	case found.Kind != kind:
		return found, life{}, messages.OperationConflict
	case found.Step == messages.StepDone:
		return found, life{}, nil
	case found.Step == messages.StepSuperseded:
		return found, life{}, errSuperseded
	case found.Step != after:
		return found, life{}, messages.InternalFault.Because("a %s is not committed after %s", kind, found.Step)
	}
	head, err := b.held(ctx, found.Operation)
	return found, head, err
}

// commit ends an operation together with what it held. The head is the last row.
func (b *Barrier) commit(found work, done messages.Operation, before life, after messages.Head, more ...Write) (Step, error) {
	op, err := b.write(found, done)
	if err != nil {
		return Step{}, err
	}
	value, err := EncodeHead(after)
	if err != nil {
		return Step{}, err
	}
	writes := append([]Write{op}, more...)
	return Step{Writes: append(writes, Replace(before.row, value)), Done: []string{done.ID}}, nil
}

// frontier creates the record of where an incarnation ended. It goes with the
// commit, so whatever stands there already is not this operation's.
func (b *Barrier) frontier(ctx context.Context, op messages.Operation, streams map[string]uint64) (Write, error) {
	row, found, err := b.store.Get(ctx, FrontierKey(op.UID))
	if err != nil {
		return Write{}, err
	}
	if found {
		if stands, err := DecodeFrontier(row); err != nil {
			return Write{}, err
		} else if stands.Operation != op.ID {
			return Write{}, messages.OperationConflict.Because("%s recorded where %s ended", stands.Operation, op.UID)
		}
		return Write{}, corrupt(row.Key, "operation "+op.ID+" is not over, and has it")
	}
	value, err := EncodeFrontier(Frontier{UID: op.UID, Operation: op.ID, Streams: streams})
	return Create(FrontierKey(op.UID), value), err
}

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
