package memory

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

var (
	_ ledger.Scanner = (*Backend)(nil)
	_ ledger.Marker  = (*Backend)(nil)
)

// milestoneKey is where Milestone writes.
const milestoneKey = "beat.memory"

// Scan reads every row that matches at one moment, as ledger.Scanner says.
func (b *Backend) Scan(ctx context.Context, ask ledger.Scan) ([]ledger.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, messages.ScanIncomplete.From(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rows[ask.Milestone.Key].revision < ask.Milestone.Revision {
		return nil, messages.ScanIncomplete.Because("revision %d is not there", ask.Milestone.Revision)
	}
	var rows []ledger.Row
	for key, r := range b.rows {
		if !ledger.Matches(ask.Filter, key) {
			continue
		}
		if r.marker {
			return nil, ledger.Corrupt(key, "deleted")
		}
		rows = append(rows, ledger.Row{Key: key, Value: bytes.Clone(r.value), Revision: r.revision})
	}
	slices.SortFunc(rows, func(a, b ledger.Row) int { return strings.Compare(a.Key, b.Key) })
	return rows, nil
}

// Milestone writes a row of no meaning, as ledger.Marker says.
func (b *Backend) Milestone(context.Context) (ledger.Milestone, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	b.rows[milestoneKey] = record{value: []byte("{}"), revision: b.last}
	return ledger.Milestone{Key: milestoneKey, Revision: b.last}, nil
}
