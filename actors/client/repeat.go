package client

import (
	"context"
	"errors"
	"time"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

const (
	firstPause = 10 * time.Millisecond
	mostPause  = 250 * time.Millisecond
)

// Repeat asks, and asks again within the time there is, while the failure is one that
// again allows. A caller who leaves meanwhile is the error's reason.
func Repeat[T any](ctx context.Context, to supervisor.Ref, m any, within time.Duration, again func(error) bool) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		answer, err := Ask[T](ctx, to, m)
		if err == nil || !again(err) || !wait(ctx, pause) {
			return answer, abandoned(ctx, err)
		}
	}
}

// Passes reports whether the same question may soon be answered.
func Passes(err error) bool {
	return errors.Is(err, messages.ActorAway) || errors.Is(err, messages.Unproved)
}

// Unsaid puts the failure of a write into the words that it takes: an actor that saw
// it and did not answer leaves its outcome unknown.
func Unsaid(err error) error {
	if errors.Is(err, supervisor.ErrUnanswered) {
		return messages.OutcomeUnknown.From(err)
	}
	return err
}

func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// abandoned gives the reason why nobody waits any more, where that is why there is
// no answer: it is no fault of whoever was asked.
func abandoned(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}
