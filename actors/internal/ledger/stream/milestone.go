package stream

import (
	"context"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
)

var _ ledger.Marker = (*Backend)(nil)

// Milestone writes this process's beat, as ledger.Marker says. Without an answer it
// is messages.BrokerAway.
func (b *Backend) Milestone(ctx context.Context) (ledger.Milestone, error) {
	at, err := b.client.beat(ctx, b.count())
	return ledger.Milestone{Key: ledger.BeatKey(b.client.cfg.Instance), Revision: at}, err
}
