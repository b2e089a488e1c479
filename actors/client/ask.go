package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Ask asks the actor behind to and waits for its answer until ctx ends. Errors
// carry entries of the catalogue: the actor's own refusal, or ServiceClosing, Busy
// or ActorAway when it could not be asked. Unseen tells whether the actor may have
// done what it was asked for.
func Ask[T any](ctx context.Context, to supervisor.Ref, message any) (T, error) {
	answer, err := supervisor.Ask[T](ctx, to, message)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil { // whoever called it off may have been heard
		err = fmt.Errorf("%w: %w", supervisor.ErrUnanswered, err)
	}
	return answer, Refusal(err)
}

// Unseen reports whether an error of Ask means that the actor never saw the
// message, so that it may be sent again whatever it asks for.
func Unseen(err error) bool {
	away := errors.Is(err, supervisor.ErrUnavailable) || errors.Is(err, supervisor.ErrOverloaded)
	return away && !errors.Is(err, supervisor.ErrUnanswered)
}

// Refusal puts the kit's errors into the catalogue's words.
func Refusal(err error) error {
	var entry messages.Error
	switch {
	case err == nil || errors.As(err, &entry):
		return err
	case errors.Is(err, supervisor.ErrClosing):
		return messages.ServiceClosing.From(err)
	case errors.Is(err, supervisor.ErrOverloaded):
		return messages.Busy.From(err)
	case errors.Is(err, supervisor.ErrUnavailable):
		return messages.ActorAway.From(err)
	default:
		return messages.InternalFault.From(err)
	}
}

// Unopened puts into the catalogue's words why an actor that was added could not be
// opened: for no reason that the catalogue knows, it is away.
func Unopened(err error) error {
	if errors.Is(err, supervisor.ErrNoSuchActor) {
		return messages.ServiceClosing.From(err)
	}
	err = Refusal(err)
	if errors.Is(err, messages.InternalFault) {
		return messages.ActorAway.From(err)
	}
	return err
}
