package retirement

import (
	"context"
	"errors"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// How often an awaited operation is looked at. One that runs here tells its end; of one
// that is not begun the leader must be proved each time, so that it is looked at less
// and less.
const (
	lookHere      = time.Second
	lookElsewhere = 250 * time.Millisecond
)

// await returns an operation once it is over, or as it stands at the deadline.
func (c *clerk) await(ctx context.Context, m messages.AwaitOperation) (messages.OperationProgress, error) {
	over, leave := c.books.watch(m.ID)
	defer leave()
	late := time.NewTimer(time.Until(m.Deadline))
	defer late.Stop()
	for unbegun := lookElsewhere; ; {
		found, err := c.read(ctx, m.ID)
		if err == nil && (found.Step == messages.StepDone || found.Step == messages.StepSuperseded) {
			return found, nil
		}
		if err != nil && !errors.Is(err, messages.OperationNotFound) && !messages.Describe(err).Retryable {
			return found, err
		}
		every := lookElsewhere
		switch {
		case c.books.here(m.ID):
			every = lookHere
		case err != nil:
			every = unbegun
			unbegun = min(2*unbegun, lookHere)
		}
		timer := time.NewTimer(every)
		select {
		case <-over:
			over = nil // read once more
		case <-timer.C:
		case <-late.C:
			timer.Stop()
			return found, err
		case <-ctx.Done():
			timer.Stop()
			return found, err
		}
		timer.Stop()
	}
}
