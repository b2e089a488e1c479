package ledger

import (
	"context"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Enrol makes sure that a principal's incarnation has a root credential with at
// least half its life left, and returns it: the same one to everybody who asks,
// however many at once.
//
// Refused with messages.NotGranted without a live grant, IncarnationEnded when the
// grant is for another incarnation or this one is retired, GateShut while an
// operation holds the gate, IncarnationStanding when another incarnation still
// stands.
func (w *Writer) Enrol(ctx context.Context, ask messages.Enrol) (messages.Enrolled, error) {
	if err := names.CheckPrincipal(ask.Principal); err != nil {
		return messages.Enrolled{}, err
	}
	if err := names.CheckUID(ask.UID); err != nil {
		return messages.Enrolled{}, err
	}
	enrolment := &enrolment{ask: ask, fresh: w.NewUID()}
	err := w.transition(ctx, func(ctx context.Context) error { return enrolment.attempt(ctx, w) })
	if err == nil && enrolment.mustWrite {
		err = enrolment.inTurn(ctx, w)
	}
	if err != nil {
		return messages.Enrolled{}, err
	}
	root := enrolment.root
	return messages.Enrolled{UID: ask.UID, CredentialID: root.ID, Expires: root.Expires}, nil
}

// enrolment is one call across its attempts.
type enrolment struct {
	ask messages.Enrol
	// fresh is the id of the root to make, if one is to be made.
	fresh string
	root  messages.Root
	// mustWrite is set when there is no root to be found. Finding is for everybody at
	// once; writing is for one caller after another, who holds the turn.
	mustWrite, turn bool
}

// inTurn tries again as the one caller of this process who may write for the principal.
func (e *enrolment) inTurn(ctx context.Context, w *Writer) error {
	leave, err := w.exchanges.enter(ctx, e.ask.Principal)
	if err != nil {
		return err
	}
	defer leave()
	e.turn = true
	return w.transition(ctx, func(ctx context.Context) error { return e.attempt(ctx, w) })
}

func (e *enrolment) attempt(ctx context.Context, w *Writer) error {
	grant, err := w.grantOf(ctx, e.ask.Principal)
	if err != nil {
		return err
	}
	switch {
	case !grant.live():
		return messages.NotGranted
	case grant.UID != e.ask.UID:
		return messages.IncarnationEnded
	}
	head, err := w.headOf(ctx, e.ask.Principal)
	if err != nil {
		return err
	}
	if head.found && head.UID == e.ask.UID {
		return e.stand(ctx, w, grant, head)
	}
	if !head.over() {
		return messages.IncarnationStanding
	}
	if e.mustWrite = !e.turn; e.mustWrite {
		return nil
	}
	return e.begin(ctx, w, grant, head)
}

// stand finds, renews or fills the root of the incarnation that stands. Whoever shuts
// its gate writes the head, and whoever revokes its grant that: either refuses what
// is written at the same moment.
func (e *enrolment) stand(ctx context.Context, w *Writer, grant standing, head life) error {
	switch head.State {
	case messages.HeadRetired:
		return messages.IncarnationEnded
	case messages.HeadFrozen, messages.HeadRetiring:
		return messages.GateShut
	}
	now := w.now()
	e.root = head.Root
	if e.root.ID != "" && e.root.Expires.Sub(now) >= rootLife/2 {
		return nil
	}
	if e.mustWrite = !e.turn; e.mustWrite {
		return nil
	}
	if e.root.ID == "" {
		e.root.ID = e.fresh
	}
	e.root.Expires = now.Add(rootLife)
	head.Root = e.root
	value, err := EncodeHead(head.Head)
	if err != nil {
		return err
	}
	_, err = w.store.Apply(ctx, Batch{Writes: []Write{Replace(head.row, value), Touch(grant.row)}})
	return err
}

// begin makes the incarnation: its name reserved, its head, and a touch of the
// grant, so that a revocation at the same moment either refuses it or retires it.
func (e *enrolment) begin(ctx context.Context, w *Writer, grant standing, before life) error {
	if err := e.unreserved(ctx, w); err != nil {
		return err
	}
	e.root = messages.Root{ID: e.fresh, Expires: w.now().Add(rootLife)}
	head, err := EncodeHead(messages.Head{Principal: e.ask.Principal, UID: e.ask.UID, Epoch: 1,
		State: messages.HeadActive, Generation: 1, Root: e.root})
	if err != nil {
		return err
	}
	reservation, err := EncodeReservation(Reservation{UID: e.ask.UID, Principal: e.ask.Principal, By: w.Instance})
	if err != nil {
		return err
	}
	_, err = w.store.Apply(ctx, Batch{
		Writes: []Write{Create(UIDKey(e.ask.UID), reservation), Replace(before.row, head), Touch(grant.row)},
		// The head holds the random id of the root.
		Witness: HeadKey(e.ask.Principal),
	})
	return err
}

// unreserved refuses a name that somebody has already lived under. A reservation
// of our own goes with a head of ours, since both are written at once; one that
// stands without it is no work of ours.
func (e *enrolment) unreserved(ctx context.Context, w *Writer) error {
	row, found, err := w.store.Get(ctx, UIDKey(e.ask.UID))
	if err != nil || !found {
		return err
	}
	reservation, err := DecodeReservation(row)
	if err != nil {
		return err
	}
	if reservation.Principal != e.ask.Principal {
		return messages.IncarnationEnded.Because("its name is taken by another principal")
	}
	return messages.RowCorrupt.Because("%s is reserved, and no head names it", row.Key)
}
