package claim

import (
	"context"
	"errors"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Release gives the plane back, so that the next process need not ask anybody. The
// scanners are closed before. From the call on nothing else may be done with the
// plane, whatever comes of it.
//
// It fails with messages.ReleaseUnreachable when the broker did not answer, and may
// then be called again; and with messages.ClaimLost when the row is not ours, which
// is then left as it is. Once it succeeded it succeeds without asking. Concurrent
// calls wait for each other.
func (h *Held) Release(ctx context.Context) error {
	h.mu.Lock()
	h.release = true
	h.mu.Unlock()
	select {
	case h.releasing <- struct{}{}:
		defer func() { <-h.releasing }()
	case <-ctx.Done():
		return messages.ReleaseUnreachable.From(ctx.Err())
	}
	if h.isReleased() {
		return nil
	}
	for {
		err := h.releaseOnce(ctx)
		switch {
		case err == nil:
			h.mu.Lock()
			h.released = true
			h.mu.Unlock()
			return nil
		case errors.Is(err, messages.ClaimLost):
			return err
		case !errors.Is(err, ledger.ErrLost): // lost: look what stands there now
			return messages.ReleaseUnreachable.From(err)
		}
	}
}

func (h *Held) isReleased() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.released
}

// releaseOnce reads, and writes if the row is ours.
func (h *Held) releaseOnce(ctx context.Context) error {
	if err := h.store.Sync(ctx); err != nil {
		return err
	}
	found, row, _, err := read(ctx, h.store)
	if err == nil {
		h.run.met(found, row.Revision)
	}
	if errors.Is(err, messages.ClaimCorrupt) {
		return messages.ClaimLost.From(err)
	}
	if err != nil {
		return err
	}
	switch found {
	case h.given():
		return nil
	case h.claim:
	default:
		return messages.ClaimLost
	}
	return h.run.free(ctx, h.store, found, row)
}
