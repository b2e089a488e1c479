package space

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/plane"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// askWithin is how long a beginning may take, repetitions included.
	askWithin = 10 * time.Second
	// awaitRound is how long the desk is asked to wait at a time, and awaitGrace how much
	// later its word may come.
	awaitRound = 30 * time.Second
	awaitGrace = 2 * time.Second
	// revokeWithin is for the end of a whole lineage, with the judging anew of who held it.
	revokeWithin = 5 * time.Minute
	// byHost is who asks where the embedding program does not say.
	byHost = "host"
)

// Retire ends an incarnation for good and returns the proof: nobody is connected any
// more, and where the streams ended. Nothing is issued to it from the moment that it is
// durable, whichever process then does the rest; it may be asked of any, and whoever
// asks, here, over HTTP or over the rail, shares one operation. By may be left empty.
//
// When ctx ends before it is over, the error is OperationPending and the operation, as
// it is known, goes on; asking again joins it. Refused, with nothing changed, with
// Malformed, GrantNotFound, and IncarnationEnded when UID names none that the principal
// has or had. OutcomeUnknown and what else is retryable may be asked again.
func (h *Handle) Retire(ctx context.Context, ask messages.AskRetirement) (messages.OperationProgress, error) {
	ask.By = cmp.Or(ask.By, byHost)
	tree, err := h.open()
	if err != nil {
		return messages.OperationProgress{}, err
	}
	writer, _ := tree.Ref(plane.Writer)
	asked, err := client.Repeat[messages.RetirementAsked](ctx, writer, ask, askWithin, client.Passes)
	switch {
	case err != nil:
		return messages.OperationProgress{}, client.Unsaid(err)
	case asked.Operation == "": // nobody ever was it
		return messages.OperationProgress{Operation: messages.Operation{Kind: messages.Retirement, Principal: asked.Principal, UID: asked.UID,
			Step: messages.StepDone, By: ask.By, Outcome: messages.Outcome{Vacuous: true}}}, nil
	}
	return h.AwaitOperation(ctx, asked.Operation)
}

// Takeover ends whatever was issued to an incarnation, which goes on under the next
// epoch with nothing, and returns the proof. The same ID, for the same incarnation, is
// the same operation; an empty one begins another. UID and By may be left empty.
//
// It ends as Retire does when ctx does. Refused, with nothing changed, as
// messages.BeginTakeover says: with PlaneAway by a process that does not hold the
// plane. A retirement that overtakes it ends it with IncarnationEnded.
func (h *Handle) Takeover(ctx context.Context, ask messages.BeginTakeover) (messages.OperationProgress, error) {
	ask.By, ask.ID = cmp.Or(ask.By, byHost), cmp.Or(ask.ID, names.NewUID())
	if err := names.CheckPrincipal(ask.Principal); err != nil {
		return messages.OperationProgress{}, err
	}
	if _, err := askDesk[messages.OperationProgress](ctx, h, ask, askWithin); err != nil {
		return messages.OperationProgress{}, client.Unsaid(err)
	}
	return h.AwaitOperation(ctx, ask.ID)
}

// AwaitOperation returns an operation once it is over, and with OperationPending, as it
// is known then, when ctx ends before. One that is not begun is waited for too.
func (h *Handle) AwaitOperation(ctx context.Context, id string) (last messages.OperationProgress, err error) {
	if err := names.CheckUID(id); err != nil {
		return last, err
	}
	last.ID = id
	for at := time.Now(); ; at = time.Now().Add(awaitRound) { // the first looks how far it is
		round := messages.AwaitOperation{ID: id, Deadline: at}
		found, err := askDesk[messages.OperationProgress](ctx, h, round, awaitRound+awaitGrace)
		if err == nil {
			last = found
		}
		switch {
		case err == nil && found.Step == messages.StepDone:
			return found, nil
		case err == nil && found.Step == messages.StepSuperseded:
			return found, messages.IncarnationEnded.Because("a retirement superseded the takeover %s", id)
		case ctx.Err() != nil:
			return last, messages.OperationPending.From(context.Cause(ctx))
		case errors.Is(err, messages.ServiceClosing):
			return last, err
		case err != nil && !errors.Is(err, messages.OperationNotFound) && !messages.Describe(err).Retryable:
			return last, err
		case err != nil:
			_ = h.wait(ctx, nil, lookAgain) // the next round says what has ended
		}
	}
}

// Operation reads one operation, whether it is over or not. It is refused with
// OperationNotFound for one that was never begun.
func (h *Handle) Operation(ctx context.Context, id string) (messages.OperationProgress, error) {
	return askDesk[messages.OperationProgress](ctx, h, messages.ReadOperation{ID: id}, readWithin)
}

// Operations lists what is begun and not over, with what each waits for.
func (h *Handle) Operations(ctx context.Context) (messages.Operations, error) {
	return askDesk[messages.Operations](ctx, h, messages.ListOperations{}, readWithin)
}

// RevokeHandle ends everything that was ever derived from a signed handle, whoever
// holds it: nothing is derived from it any more, every credential of its lineage is
// revoked, and the connections of their holders are judged anew. It returns when that
// is proved. Whatever it fails with, asking again finishes what was not done. Refused
// with Malformed, HandleNotFound, and PlaneAway by a process that does not hold the
// plane.
func (h *Handle) RevokeHandle(ctx context.Context, ask messages.RevokeHandle) (messages.HandleRevoked, error) {
	return askDesk[messages.HandleRevoked](ctx, h, ask, revokeWithin)
}

// askDesk asks who knows the operations, again while that restarts.
func askDesk[T any](ctx context.Context, h *Handle, m any, within time.Duration) (T, error) {
	tree, err := h.open()
	if err != nil {
		var none T
		return none, err
	}
	desk, _ := tree.Ref(plane.Desk)
	return client.Repeat[T](ctx, desk, m, within, client.Passes)
}
