package stream

import (
	"context"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
)

// Backend is the stream as ledger.Backend, for whoever writes. It is safe for
// concurrent use, and stands on one connection, which it never closes.
type Backend struct {
	client client
	lanes  *Lanes
	beats  atomic.Uint64
}

var _ ledger.Backend = (*Backend)(nil)

// New speaks to the stream of cfg over conn. All backends of a process share lanes.
func New(conn *nats.Conn, cfg Config, lanes *Lanes) *Backend {
	return &Backend{client: client{conn: conn, cfg: cfg}, lanes: lanes}
}

// Get reads one row, as ledger.Source says.
func (b *Backend) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	return b.client.get(ctx, key)
}

// List names the keys that match, as ledger.Source says.
func (b *Backend) List(ctx context.Context, filter string) ([]string, error) {
	return b.client.list(ctx, filter)
}

// Sync proves the leader by a beat of our own. One replica needs no proof.
func (b *Backend) Sync(ctx context.Context) error {
	if b.client.cfg.proved() {
		return nil
	}
	return b.client.beat(ctx, b.beats.Add(1))
}
