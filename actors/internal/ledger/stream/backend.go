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
	synced Synced
}

var _ ledger.Backend = (*Backend)(nil)

// New speaks to the stream of cfg over conn. All backends of a process share lanes.
func New(conn *nats.Conn, cfg Config, lanes *Lanes) *Backend {
	return &Backend{client: client{conn: conn, cfg: cfg}, lanes: lanes}
}

// Get reads one row, as ledger.Source says; after Sync, as Latest does.
func (b *Backend) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	if b.synced.Lately() {
		return b.Latest(ctx, key)
	}
	return b.client.get(ctx, key)
}

// Latest is Get that nobody answers but who leads. With several replicas it costs a write.
func (b *Backend) Latest(ctx context.Context, key string) (ledger.Row, bool, error) {
	if b.client.cfg.proved() {
		return b.client.get(ctx, key)
	}
	return b.client.confirmed(ctx, key, b.count)
}

// List names the keys that match, as ledger.Source says; after Sync, as ListLatest does.
func (b *Backend) List(ctx context.Context, filter string) ([]string, error) {
	if b.synced.Lately() {
		return b.ListLatest(ctx, filter)
	}
	return b.client.list(ctx, filter, 0)
}

// ListLatest is List that nobody answers but who leads. With several replicas it costs a
// write.
func (b *Backend) ListLatest(ctx context.Context, filter string) ([]string, error) {
	if b.client.cfg.proved() {
		return b.client.list(ctx, filter, 0)
	}
	reached, err := b.client.beat(ctx, b.count())
	if err != nil {
		return nil, err
	}
	return b.client.list(ctx, filter, reached)
}

// Sync proves the leader by a beat of our own. One replica needs no proof.
func (b *Backend) Sync(ctx context.Context) error {
	if b.client.cfg.proved() {
		return nil
	}
	if _, err := b.client.beat(ctx, b.count()); err != nil {
		return err
	}
	b.synced.Now()
	return nil
}

func (b *Backend) count() uint64 { return b.beats.Add(1) }
