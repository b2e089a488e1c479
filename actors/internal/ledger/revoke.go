package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// RevokeGrant ends a principal's grant and, in the same batch, asks for the
// retirement of its incarnation; then, each in a batch of its own, it does so for
// every machine's grant below. When it answers, all of it is durable: nobody is
// admitted any more, and whoever holds the plane ends the incarnations. A process
// that dies in between has denied the principal and, since their chain no longer
// holds, everybody below; asking again finishes the rest. So revoking what is revoked
// succeeds. Refused with messages.GrantNotFound where no grant ever stood. A row that
// cannot be read stops nobody else's end; since it may be of one below, the answer is
// then RowCorrupt, with its key in the cause, and asking again finishes once it can be
// read.
func (w *Writer) RevokeGrant(ctx context.Context, ask messages.RevokeGrant) (messages.GrantWritten, error) {
	if err := names.CheckPrincipal(ask.Principal); err != nil {
		return messages.GrantWritten{}, err
	}
	if err := checkContent(messages.Allowance{}, "", ask.By); err != nil {
		return messages.GrantWritten{}, err
	}
	ended, err := w.end(ctx, ask.Principal, "", ask.By)
	if err != nil {
		return messages.GrantWritten{}, err
	}
	if err := w.endBelow(ctx, ask); err != nil {
		return messages.GrantWritten{}, err
	}
	answer := written(ended.result, messages.Secret{})
	answer.Operation = ended.operation
	return answer, nil
}

// endBelow ends the machines below a principal whose own grant is revoked. It lists
// after the parent's end is durable and under a proved leader: a child is written
// together with a touch of its parent's grant, so none can be missed.
func (w *Writer) endBelow(ctx context.Context, ask messages.RevokeGrant) error {
	done := map[messages.Principal]bool{ask.Principal: true}
	var unread, unended error
	for above := []messages.Principal{ask.Principal}; len(above) > 0; {
		if err := w.store.Sync(ctx); err != nil {
			return err
		}
		all, unreadable, err := listGrants(ctx, w.store, grantsOf(ask.Principal.Owner))
		if err != nil {
			return err
		}
		unread = unreadable
		under := map[messages.Principal]bool{}
		for _, p := range above {
			under[p] = true
		}
		above = nil
		for _, g := range all {
			if !under[g.Parent] || done[g.Principal] {
				continue
			}
			if g.Kind == messages.Managed && g.State == messages.GrantLive {
				_, err := w.end(ctx, g.Principal, g.UID, ask.By)
				if err != nil && !errors.Is(err, messages.RowCorrupt) {
					return err
				}
				unended = errors.Join(unended, err)
			}
			done[g.Principal] = true
			above = append(above, g.Principal)
		}
	}
	if err := errors.Join(unread, unended); err != nil {
		return messages.RowCorrupt.From(fmt.Errorf("some below %s may not have been ended: %w", ask.Principal, err))
	}
	return nil
}

// AskRetirement revokes one principal's grant and, in the same batch, asks for the
// retirement of its incarnation. It answers with the id of that retirement, also when
// it was asked for, begun or done before; with none when the grant was never used, so
// that there is nothing to end. The machines below are denied, since their chain no
// longer holds, and keep their grants.
//
// Refused with messages.GrantNotFound where no grant ever stood, and with
// IncarnationEnded when UID names none that this principal has or had.
func (w *Writer) AskRetirement(ctx context.Context, ask messages.AskRetirement) (messages.RetirementAsked, error) {
	if err := names.CheckPrincipal(ask.Principal); err != nil {
		return messages.RetirementAsked{}, err
	}
	if ask.UID != "" {
		if err := names.CheckUID(ask.UID); err != nil {
			return messages.RetirementAsked{}, err
		}
	}
	if err := checkContent(messages.Allowance{}, "", ask.By); err != nil {
		return messages.RetirementAsked{}, err
	}
	ending := &ending{of: ask.Principal, by: ask.By, uid: ask.UID, named: ask.UID != "", witness: w.NewUID()}
	if err := ending.run(ctx, w); err != nil {
		return messages.RetirementAsked{}, err
	}
	return messages.RetirementAsked{Principal: ask.Principal, UID: ending.uid, Operation: ending.operation}, nil
}

// end makes the grant of one principal revoked and its incarnation's retirement asked
// for: of the one named, or without a name of the one it finds.
func (w *Writer) end(ctx context.Context, p messages.Principal, uid, by string) (*ending, error) {
	e := &ending{of: p, by: by, uid: uid, witness: w.NewUID()}
	return e, e.run(ctx, w)
}

// ending is one revocation across its attempts.
type ending struct {
	of      messages.Principal
	by      string
	witness string
	// uid is the incarnation that is being ended; if none was named, the one met first.
	uid    string
	named  bool
	result messages.Grant
	// operation is the retirement of it; empty when there is nothing to end.
	operation string
}

// run goes one after another with the others of this process: they write one row of
// what is asked for.
func (e *ending) run(ctx context.Context, w *Writer) error {
	leave, err := w.endings.enter(ctx, messages.Principal{})
	if err != nil {
		return err
	}
	defer leave()
	return w.transition(ctx, func(ctx context.Context) error {
		wrote, err := e.attempt(ctx, w)
		if err == nil && !wrote { // so the answer rests on what was read
			if err = w.store.Sync(ctx); err == nil {
				_, err = e.attempt(ctx, w)
			}
		}
		return err
	})
}

// attempt reports whether there was anything to write.
func (e *ending) attempt(ctx context.Context, w *Writer) (bool, error) {
	before, err := w.grantOf(ctx, e.of)
	if err != nil {
		return false, err
	}
	if !before.found {
		return false, messages.GrantNotFound
	}
	if e.uid == "" {
		e.uid = before.UID
	}
	if before.UID != e.uid {
		return false, e.past(ctx, w)
	}
	head, err := w.headOf(ctx, e.of)
	if err != nil {
		return false, err
	}
	batch, err := e.batch(ctx, before, head, w)
	if err != nil || len(batch.Writes) == 0 {
		return false, err
	}
	_, err = w.store.Apply(ctx, batch)
	return true, err
}

// past says what became of an incarnation whose grant has been given anew: whoever
// lived under it has been retired, since nothing is granted over one that stands.
func (e *ending) past(ctx context.Context, w *Writer) error {
	row, found, err := w.store.Get(ctx, UIDKey(e.uid))
	if err != nil {
		return err
	}
	var reservation Reservation
	if found {
		if reservation, err = DecodeReservation(row); err != nil {
			return err
		}
	}
	switch {
	case found && reservation.Principal == e.of:
		e.operation = OperationOf(e.uid)
	case e.named:
		return messages.IncarnationEnded.Because("%s goes on as another one, and none of this name is on record", e.of)
	}
	return nil
}

// batch is what is left to write; nothing when all is done.
func (e *ending) batch(ctx context.Context, before standing, head life, w *Writer) (Batch, error) {
	var batch Batch
	e.result, e.operation = before.Grant, ""
	if before.live() {
		e.result = revoked(before.Grant, e.by, w.now())
		value, err := EncodeGrant(e.result, e.witness)
		if err != nil {
			return Batch{}, err
		}
		batch = Batch{Writes: []Write{Replace(before.row, value)}, Witness: before.row.Key}
	}
	// Who exchanges at this moment touches the grant: where there is no head now, there
	// will be none.
	if !head.found || head.UID != e.uid {
		return batch, nil
	}
	e.operation = OperationOf(e.uid)
	if head.State != messages.HeadActive && head.State != messages.HeadFrozen {
		return batch, nil // it is under way, or done
	}
	asks, err := w.ask(ctx, e.uid, e.witness)
	if err != nil || asks.Key == "" {
		return batch, err
	}
	batch.Writes = append(batch.Writes, asks)
	if batch.Witness == "" {
		batch.Witness = asks.Key
	}
	return batch, nil
}
