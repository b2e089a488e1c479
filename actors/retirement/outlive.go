package retirement

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/messages"
)

// unasked are servers of somebody else's: they tell nothing, and drop nobody.
type unasked struct{}

// Observe and the rest are evict.Servers.
func (unasked) Observe(context.Context, []string) (messages.Roster, error) {
	return messages.Roster{}, messages.SystemAbsent
}

func (unasked) Sweep(context.Context, messages.SweepConnections) (messages.Swept, error) {
	return messages.Swept{}, messages.SystemAbsent
}

func (unasked) Kick(context.Context, []messages.ConnectionRef) ([]messages.KickResult, error) {
	return nil, messages.SystemAbsent
}

// outlive proves by time that nobody of a target is connected any more, and answers.
// Nobody waits for anybody else's: to wait costs nothing.
func (b *broom) outlive(ctx context.Context, e errand) {
	order := evict.Ask{Targets: []messages.Target{e.target}, Frozen: e.denied}
	outcome, err := b.outlast(ctx, order, func(p evict.Progress) { b.tell([]errand{e}, p) })
	if err != nil {
		b.life.Reply(e.to, err)
		return
	}
	b.life.Reply(e.to, evicted{outcome})
}

// outlast returns when everything has run out that was issued before the freeze.
func (b *broom) outlast(ctx context.Context, order evict.Ask, tell func(evict.Progress)) (evict.Outcome, error) {
	if order.Frozen.IsZero() {
		order.Frozen = time.Now()
	}
	order.Expires = order.Frozen.Add(evict.Outlived(b.config.Outlives))
	return evict.Run(ctx, evict.Ports{Servers: unasked{}}, order, tell)
}

// evictWithin is how long an eviction may take.
func (c Config) evictWithin() time.Duration {
	if c.Outlives == 0 {
		return evictWithin
	}
	return evictWithin + evict.Proved(c.Outlives)
}
