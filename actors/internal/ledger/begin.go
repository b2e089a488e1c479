package ledger

import (
	"context"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// BeginTakeover shuts the gate of an incarnation for a takeover of that id, and
// returns the operation as it then stands. The head is the last row of the step. The
// same id for the same incarnation is the same operation: it is returned as it is,
// however far it has come, and there is nothing to write.
//
// Refused with messages.OperationConflict when the id names another operation,
// IncarnationEnded when the incarnation is not the one that stands, GateShut while
// another operation holds the gate, and Malformed for an id that only a retirement
// may have.
func (b *Barrier) BeginTakeover(ctx context.Context, ask messages.BeginTakeover) (messages.Operation, Step, error) {
	op := messages.Operation{ID: ask.ID, Kind: messages.Takeover, Principal: ask.Principal, UID: ask.UID, By: ask.By}
	if isRetirementID(ask.ID) {
		return op, Step{}, messages.Malformed.Because("the id is of a retirement's kind")
	}
	if err := checkOperation(op); err != nil {
		return op, Step{}, err
	}
	return b.begin(ctx, op)
}

// BeginRetirement shuts the gate of an incarnation for good, and returns the
// operation as it then stands. The head is the last row of the step. Its id is that
// of OperationOf, so whoever asks asks for the same operation: it is returned as it
// is, also when it was done long ago and another incarnation stands, and there is
// nothing to write. A takeover that is not over is superseded.
//
// Principal may be left zero, for whoever the name of the incarnation is reserved;
// By may be left empty, for whoever revoked its grant. Refused with
// messages.IncarnationEnded when the incarnation does not stand and was not retired.
func (b *Barrier) BeginRetirement(ctx context.Context, ask messages.AskRetirement) (messages.Operation, Step, error) {
	op := messages.Operation{ID: OperationOf(ask.UID), Kind: messages.Retirement, Principal: ask.Principal, UID: ask.UID, By: ask.By}
	if err := names.CheckUID(op.UID); err != nil {
		return op, Step{}, err
	}
	err := b.decided(ctx, func(ctx context.Context) (err error) {
		if op.Principal, err = b.whose(ctx, ask); err == nil {
			op.By, err = b.asker(ctx, op.Principal, ask)
		}
		return err
	})
	if err == nil {
		err = checkOperation(op)
	}
	if err != nil {
		return op, Step{}, err
	}
	return b.begin(ctx, op)
}

// whose is the principal of the incarnation that is to be retired.
func (b *Barrier) whose(ctx context.Context, ask messages.AskRetirement) (messages.Principal, error) {
	if !ask.Principal.IsZero() {
		return ask.Principal, nil
	}
	row, found, err := b.store.Get(ctx, UIDKey(ask.UID))
	if err != nil {
		return messages.Principal{}, err
	}
	if !found {
		return messages.Principal{}, messages.IncarnationEnded.Because("nobody ever lived as %s", ask.UID)
	}
	reservation, err := DecodeReservation(row)
	return reservation.Principal, err
}

// asker is who asked for a retirement.
func (b *Barrier) asker(ctx context.Context, p messages.Principal, ask messages.AskRetirement) (string, error) {
	if ask.By != "" {
		return ask.By, nil
	}
	grant, err := grantAt(ctx, b.store, p)
	if err != nil {
		return "", err
	}
	if grant.found && grant.UID == ask.UID {
		return grant.By, nil
	}
	return p.String(), nil // its grant is gone, so it was retired: nothing will be written
}

func checkOperation(op messages.Operation) error {
	if err := names.CheckUID(op.ID); err != nil {
		return err
	}
	if err := names.CheckPrincipal(op.Principal); err != nil {
		return err
	}
	if err := names.CheckUID(op.UID); err != nil {
		return err
	}
	if op.By == "" {
		return messages.Malformed.Because("an operation says who asks for it")
	}
	return checkText("writer's name", op.By)
}

func (b *Barrier) begin(ctx context.Context, op messages.Operation) (begun messages.Operation, step Step, err error) {
	op.Step, op.Began = messages.StepBegun, b.now()
	err = b.decided(ctx, func(ctx context.Context) error {
		begun, step, err = b.beginOnce(ctx, op)
		return err
	})
	return begun, step, err
}

func (b *Barrier) beginOnce(ctx context.Context, op messages.Operation) (messages.Operation, Step, error) {
	found, err := b.operationAt(ctx, op.ID)
	if err != nil {
		return op, Step{}, err
	}
	if found.found {
		if found.Kind != op.Kind || found.Principal != op.Principal || found.UID != op.UID {
			return found.Operation, Step{}, messages.OperationConflict
		}
		return found.Operation, Step{}, nil
	}
	head, err := headAt(ctx, b.store, op.Principal)
	switch {
	case err != nil:
		return op, Step{}, err
	case !head.found || head.UID != op.UID || head.State == messages.HeadRetired:
		return op, Step{}, messages.IncarnationEnded
	}
	step := Step{Begin: []string{op.ID}}
	if head.State != messages.HeadActive {
		if step, err = b.supersede(ctx, op, head, step); err != nil {
			return op, Step{}, err
		}
	}
	shut := head.Head
	shut.State, shut.Operation = messages.HeadFrozen, refOf(op)
	if op.Kind == messages.Retirement {
		shut.State = messages.HeadRetiring
	}
	begins, err := b.write(found, op)
	if err != nil {
		return op, Step{}, err
	}
	value, err := EncodeHead(shut)
	step.Writes = append(append([]Write{begins}, step.Writes...), Replace(head.row, value))
	return op, step, err
}

// supersede ends the takeover that holds a gate, for a retirement; nothing else may
// have a gate that is shut.
func (b *Barrier) supersede(ctx context.Context, op messages.Operation, head life, step Step) (Step, error) {
	if op.Kind != messages.Retirement || head.State != messages.HeadFrozen {
		return step, messages.GateShut.Because("%s %s holds it", head.Operation.Kind, head.Operation.ID)
	}
	holder, err := b.operationAt(ctx, head.Operation.ID)
	switch {
	case err != nil:
		return step, err
	case !holder.found || over(holder.Step) || holder.UID != head.UID || holder.Principal != head.Principal:
		return step, b.moved(ctx, head)
	}
	ended := holder.Operation
	ended.Step, ended.Ended = messages.StepSuperseded, b.now()
	write, err := b.write(holder, ended)
	step.Writes, step.Done = append(step.Writes, write), append(step.Done, holder.ID)
	return step, err
}

// moved says why the operation that a head names does not hold it: the head has been
// opened since, perhaps for yet another one (ErrLost), or they are corrupt.
func (b *Barrier) moved(ctx context.Context, head life) error {
	again, err := headAt(ctx, b.store, head.Principal)
	switch {
	case err != nil:
		return err
	case again.row.Revision > head.row.Revision:
		return ErrLost
	}
	return corrupt(head.row.Key, "no operation holds it shut")
}
