package ledger

import (
	"context"

	"github.com/cotal-ai/authplane/messages"
)

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
