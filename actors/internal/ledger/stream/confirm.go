package stream

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// syncedFor is how long what is read after ledger.Backend's Sync is confirmed: as long as
// that promises, and somewhat more.
const syncedFor = 1500 * time.Millisecond

// Synced remembers when the leader was proved for whoever reads next. It is safe for
// concurrent use; the zero value knows of no proof.
type Synced struct{ at atomic.Int64 } // in ns since the epoch of this process

var epoch = time.Now()

// Now says that the leader is proved.
func (s *Synced) Now() { s.at.Store(int64(time.Since(epoch))) }

// Lately reports whether reads are to be confirmed, so that the proof holds for them.
func (s *Synced) Lately() bool {
	at := s.at.Load()
	return at > 0 && time.Since(epoch)-time.Duration(at) < syncedFor
}

// askAgainIn is how long a row is left alone that is being written, or that was answered
// by another server than the one that leads.
const askAgainIn = 5 * time.Millisecond

// confirmed is get where two servers may take themselves for the leader: one that was cut
// off and has not yet heard of the new one answers reads as well. That a row was the latest
// is shown by a beat that is taken only if it is, by whoever has a quorum. count numbers
// the beats.
func (c client) confirmed(ctx context.Context, key string, count func() uint64) (ledger.Row, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.timeout())
	defer cancel()
	for {
		row, found, err := c.get(ctx, key)
		if err != nil {
			return ledger.Row{}, false, err
		}
		_, err = c.beatPinned(ctx, count(), ledger.Pin{Key: key, Revision: row.Revision})
		switch {
		case err == nil:
			return row, found, nil
		case errors.Is(err, ledger.ErrLost), errors.Is(err, ledger.ErrContended):
			// Whoever answered does not lead, or the row is being written.
		default:
			return ledger.Row{}, false, fmt.Errorf("read %s: %w", key, err)
		}
		select {
		case <-time.After(askAgainIn):
		case <-ctx.Done():
			return ledger.Row{}, false, fmt.Errorf("read %s: %w", key, messages.BrokerAway.Because("nobody shows that it leads"))
		}
	}
}
