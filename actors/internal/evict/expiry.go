package evict

import (
	"context"
	"fmt"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// expirySlack is for servers whose clock is behind this process's.
const expirySlack = 5 * time.Second

// Outlived is how long after a freeze the last permission may run out that was given
// before it, where none is for longer than longest: whoever was decided for on what
// stood before is let in within the time that a client may be connecting, or not at all.
func Outlived(longest time.Duration) time.Duration { return longest + DefaultAuthTimeout }

// Proved is how long after the freeze an eviction by Expires of Outlived is over.
func Proved(longest time.Duration) time.Duration { return Outlived(longest) + expirySlack }

// outlive waits until every permission has run out, which the servers enforce. It is
// for where they cannot be asked who they are: what the account itself can see of its
// connections proves nothing, but contradicts when somebody is left at the end.
func (r *run) outlive(ctx context.Context) error {
	// Where somebody can be seen and dropped, he need not be waited for.
	if swept, err := r.look(ctx); err == nil {
		_ = r.drop(ctx, swept.Connections)
	}
	if err := r.awaitExpiry(ctx); err != nil {
		return err
	}
	for {
		swept, err := r.look(ctx)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("evict: %w", context.Cause(ctx))
		case err != nil || len(swept.Connections) == 0:
			r.eviction = messages.EvictionExpired
			return nil
		}
		if r.busy++; r.busy >= maxBusy {
			swept.Doubts = nil // nobody was to be sure of all of them
			return r.unproved(swept)
		}
		if err := pause(ctx, gap); err != nil {
			return err
		}
	}
}

// awaitExpiry waits, and tells every second how long it still takes.
func (r *run) awaitExpiry(ctx context.Context) error {
	until := r.ask.Expires.Add(expirySlack)
	total := max(time.Until(until), 0)
	for {
		left := time.Until(until)
		if left <= 0 {
			return nil
		}
		r.tell(Progress{Doing: "waits until every permission has run out", Done: int((total - left) / time.Second),
			Total:      int((total + time.Second - 1) / time.Second),
			WaitingFor: fmt.Sprintf("the longest permission runs out at %s", r.ask.Expires.UTC().Format(time.RFC3339))})
		if err := pause(ctx, min(left, time.Second)); err != nil {
			return err
		}
	}
}
