package claim

import (
	"context"
	"errors"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Run remembers which claims this process wrote, or may have written, since it
// started. It lives as long as the process, over all lives of its actors: what this
// process claimed it may take back without asking anybody, and owes giving back. It
// is safe for concurrent use; the zero value is ready.
type Run struct {
	mu     sync.Mutex
	claims map[string]bool
	// owes says that a claim of this run may stand; past is the row that the last one
	// was written over.
	owes bool
	past uint64
}

func (r *Run) wrote(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.claims[id]
}

// writes notes that a claim is about to be written over a row of that revision.
func (r *Run) writes(id string, over uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.claims == nil {
		r.claims = map[string]bool{}
	}
	r.claims[id] = true
	r.owes, r.past = true, max(r.past, over)
}

// met notes what stands: a claim that is not ours, later than what ours were written
// over, leaves nothing of them that could stand or land.
func (r *Run) met(found messages.Claim, revision uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ours := r.claims[found.ID] && found.State == messages.ClaimHeld
	if !ours && revision > r.past {
		r.owes = false
	}
}

func (r *Run) owing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owes
}

// Release gives back whatever claim of this run stands, for a process that ends
// without holding the plane: it was fenced, and had no time to take it again. When
// it owes nothing it asks nobody. The scanners are closed before.
//
// It fails with messages.ReleaseUnreachable when the broker did not answer, and may
// then be called again; and with messages.ClaimLost when what stands is no claim.
func (r *Run) Release(ctx context.Context, store *ledger.Store) error {
	for r.owing() {
		err := r.releaseOnce(ctx, store)
		switch {
		case errors.Is(err, messages.ClaimCorrupt):
			return messages.ClaimLost.From(err)
		case err != nil && !errors.Is(err, ledger.ErrLost): // lost: look what stands there now
			return messages.ReleaseUnreachable.From(err)
		case err == nil:
			return nil
		}
	}
	return nil
}

func (r *Run) releaseOnce(ctx context.Context, store *ledger.Store) error {
	if err := store.Sync(ctx); err != nil {
		return err
	}
	found, row, _, err := read(ctx, store)
	if err != nil {
		return err
	}
	r.met(found, row.Revision)
	if found.State != messages.ClaimHeld || !r.wrote(found.ID) {
		return nil
	}
	return r.free(ctx, store, found, row)
}

// free writes a claim of this run as given back.
func (r *Run) free(ctx context.Context, store *ledger.Store, ours messages.Claim, row ledger.Row) error {
	ours.State = messages.ClaimFree
	value, err := ledger.EncodeClaim(ours)
	if err != nil {
		return err
	}
	revision, err := store.Apply(ctx, ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, value)}, Witness: ledger.PlaneKey})
	if err == nil {
		r.met(ours, revision)
	}
	return err
}
