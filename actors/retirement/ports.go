package retirement

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// How long an answer is waited for. Who was asked gives up sooner; what comes later
// was lost.
const (
	writeWithin   = 20 * time.Second
	scanWithin    = 2 * time.Minute
	serversWithin = 10 * time.Second
	settleWithin  = 4 * time.Second
	// evictWithin is for a whole eviction, with one before it that is waited for.
	evictWithin = 3 * time.Minute
)

// ask asks an actor, for no longer than within. That it took longer is ActorAway: what
// was asked for may have been done.
func ask[T any](ctx context.Context, within time.Duration, to supervisor.Ref, m any) (T, error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	answer, err := client.Ask[T](limited, to, m)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = messages.ActorAway.From(err)
	}
	return answer, err
}

// servers asks the observer and the evictor.
type servers struct {
	life   *supervisor.Life
	config Config
}

// Observe and the rest are evict.Servers.
func (s servers) Observe(ctx context.Context, known []string) (messages.Roster, error) {
	return ask[messages.Roster](ctx, serversWithin, s.life.Ref(s.config.Observer), messages.ObserveServers{Known: known})
}

func (s servers) Sweep(ctx context.Context, m messages.SweepConnections) (messages.Swept, error) {
	return ask[messages.Swept](ctx, serversWithin, s.life.Ref(s.config.Observer), m)
}

func (s servers) Kick(ctx context.Context, connections []messages.ConnectionRef) ([]messages.KickResult, error) {
	answer, err := ask[messages.Kicked](ctx, serversWithin, s.life.Ref(s.config.Evictor), messages.KickConnections{Connections: connections})
	return answer.Results, err
}

// responders asks presence, which has every process of the space settle.
type responders struct{ presence supervisor.Ref }

// Settle is evict.Responders.
func (r responders) Settle(ctx context.Context, m messages.SettleResponders) (messages.Settled, error) {
	return ask[messages.Settled](ctx, settleWithin, r.presence, m)
}
