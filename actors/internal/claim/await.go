package claim

import (
	"context"
	"errors"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// askEvery is how often a process that waits asks again without being nudged.
const askEvery = time.Second

// Await acquires the plane, however long it takes: it asks at once, then once a
// second and whenever nudge receives. tell hears what is waited for, each time that
// it changes; it must not block, and may be nil.
//
// It ends early with the error of ctx, and with whatever waiting does not better:
// messages.ClaimCorrupt, StreamForeign and the like.
func Await(ctx context.Context, config Config, nudge <-chan struct{}, tell func(messages.Awaited)) (*Held, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	var shown messages.Awaited
	for {
		held, err := Acquire(ctx, config)
		if err == nil || !passes(err) {
			return held, err
		}
		if ctx.Err() == nil && tell != nil {
			if next := awaited(err); next.Reason != shown.Reason || next.Text != shown.Text || next.Holder != shown.Holder {
				next.Since = config.Now()
				shown = next
				tell(next)
			}
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-tick.C:
		case <-nudge:
		}
	}
}

// passes reports whether waiting may better it: another holder who may go, or an
// inability that passes.
func passes(err error) bool {
	return errors.Is(err, messages.ClaimLivePeer) || errors.Is(err, messages.ClaimConcurrent) || messages.Describe(err).Retryable
}

// awaited says what err makes us wait for.
func awaited(err error) messages.Awaited {
	reason := messages.Describe(err)
	w := messages.Awaited{Reason: reason, Text: reason.Message + ": " + reason.Operator, Next: reason.Next}
	var because standing
	if errors.As(err, &because) {
		w.Holder = because.holder
		w.Text = describe(because)
	}
	return w
}
