package client

import (
	"context"
	"errors"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Ask asks the actor behind to and waits for its answer until ctx ends. Errors
// carry entries of the catalogue: the actor's own refusal, or ServiceClosing, Busy
// or ActorAway when it could not be asked.
func Ask[T any](ctx context.Context, to supervisor.Ref, message any) (T, error) {
	answer, err := supervisor.Ask[T](ctx, to, message)
	return answer, refusal(err)
}

// refusal puts the kit's errors into the catalogue's words.
func refusal(err error) error {
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
