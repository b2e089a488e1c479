package ledger

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// RevokeGrant ends a principal's grant and, in the same batch, asks for the
// retirement of its incarnation; then, in further batches, it does so for every
// machine's grant below. When it answers, all of it is durable: nobody is
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
		var live []messages.Grant
		for _, g := range all {
			if !under[g.Parent] || done[g.Principal] {
				continue
			}
			if g.Kind == messages.Managed && g.State == messages.GrantLive {
				live = append(live, g)
			}
			done[g.Principal] = true
			above = append(above, g.Principal)
		}
		corrupt, err := w.endEach(ctx, live, ask.By)
		if err != nil {
			return err
		}
		unended = errors.Join(unended, corrupt)
	}
	if err := errors.Join(unread, unended); err != nil {
		return messages.RowCorrupt.From(fmt.Errorf("some below %s may not have been ended: %w", ask.Principal, err))
	}
	return nil
}

// endEach ends grants, which travel together. Rows that are corrupt keep nobody from his
// end; what is said of them is unended.
func (w *Writer) endEach(ctx context.Context, all []messages.Grant, by string) (unended, err error) {
	failed := make([]error, len(all))
	var ending errgroup.Group
	ending.SetLimit(endedAtOnce)
	for i, g := range all {
		ending.Go(func() error {
			_, err := w.end(ctx, g.Principal, g.UID, by)
			if errors.Is(err, messages.RowCorrupt) {
				failed[i], err = err, nil
			}
			return err
		})
	}
	err = ending.Wait()
	return errors.Join(failed...), err
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

// run travels with whoever else of this process ends somebody at the time.
func (e *ending) run(ctx context.Context, w *Writer) error {
	moved := false
	return w.transition(ctx, func(ctx context.Context) error {
		wrote, err := e.travel(ctx, w, moved)
		if err == nil && !wrote { // so the answer rests on what was read
			if err = w.store.Sync(ctx); err == nil {
				_, err = e.travel(ctx, w, moved)
			}
		}
		moved = moved || errors.Is(err, ErrLost)
		return err
	})
}

// travel makes one attempt, and reports whether there was anything to write. Others may
// make it for e: until they have, what they find is none of e's.
func (e *ending) travel(ctx context.Context, w *Writer, moved bool) (bool, error) {
	found := *e
	p := &passenger{moved: moved, look: func(ctx context.Context) (wish, error) { return found.look(ctx, w) }}
	wrote, err := w.ends.travel(ctx, p)
	if p.isDone() {
		*e = found
	}
	return wrote, err
}

// look finds out what is left to write; nothing when all is done.
func (e *ending) look(ctx context.Context, w *Writer) (wish, error) {
	before, err := w.grantOf(ctx, e.of)
	if err != nil {
		return wish{}, err
	}
	if !before.found {
		return wish{}, messages.GrantNotFound
	}
	if e.uid == "" {
		e.uid = before.UID
	}
	if before.UID != e.uid {
		return wish{}, e.past(ctx, w)
	}
	head, err := w.headOf(ctx, e.of)
	if err != nil {
		return wish{}, err
	}
	return e.wish(before, head, w)
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

// wish is what is left to write.
func (e *ending) wish(before standing, head life, w *Writer) (wish, error) {
	var left wish
	e.result, e.operation = before.Grant, ""
	if before.live() {
		e.result = revoked(before.Grant, e.by, w.now())
		value, err := EncodeGrant(e.result, e.witness)
		if err != nil {
			return wish{}, err
		}
		left.grant = Replace(before.row, value)
	}
	// Who exchanges at this moment touches the grant: where there is no head now, there
	// will be none.
	if !head.found || head.UID != e.uid {
		return left, nil
	}
	e.operation = OperationOf(e.uid)
	if head.State == messages.HeadActive || head.State == messages.HeadFrozen {
		left.ask = e.uid // otherwise it is under way, or done
	}
	return left, nil
}
