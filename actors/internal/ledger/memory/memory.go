package memory

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Backend holds rows in memory. It is safe for concurrent use.
type Backend struct {
	mu   sync.Mutex
	last uint64
	rows map[string]record
}

type record struct {
	value    []byte
	revision uint64
	marker   bool
}

var _ ledger.Backend = (*Backend)(nil)

// New makes an empty one.
func New() *Backend { return &Backend{rows: map[string]record{}} }

// Get reads one row, as ledger.Source says.
func (b *Backend) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return ledger.Row{}, false, messages.BrokerAway.From(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r, found := b.rows[key]
	if r.marker {
		return ledger.Row{}, false, ledger.Corrupt(key, "deleted")
	}
	if !found {
		return ledger.Row{}, false, nil
	}
	return ledger.Row{Key: key, Value: bytes.Clone(r.value), Revision: r.revision}, true, nil
}

// List names the keys that match, as ledger.Source says.
func (b *Backend) List(ctx context.Context, filter string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, messages.BrokerAway.From(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []string
	for key := range b.rows {
		if ledger.Matches(filter, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// Send lands the batch whole or not at all, as ledger.Backend says.
func (b *Backend) Send(ctx context.Context, batch ledger.Batch) (uint64, error) {
	if err := batch.Check(); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, ledger.ErrNotApplied
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range batch.Writes {
		pin := w.Pin
		if pin.Key == "" {
			pin.Key = w.Key
		}
		if b.rows[pin.Key].revision != pin.Revision {
			return 0, ledger.ErrLost
		}
	}
	for _, w := range batch.Writes {
		b.last++
		b.rows[w.Key] = record{value: bytes.Clone(w.Value), revision: b.last}
	}
	return b.last, nil
}

// Sync has nothing to prove: there is one copy.
func (b *Backend) Sync(context.Context) error { return nil }

// Mark leaves a delete marker on key, as an alien KV client would.
func (b *Backend) Mark(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	b.rows[key] = record{revision: b.last, marker: true}
}
