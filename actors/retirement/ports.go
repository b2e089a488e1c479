package retirement

import (
	"context"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// servers asks the observer and the evictor.
type servers struct {
	life   *supervisor.Life
	config Config
}

// Observe and the rest are evict.Servers.
func (s servers) Observe(ctx context.Context, known []string) (messages.Roster, error) {
	return client.Ask[messages.Roster](ctx, s.life.Ref(s.config.Observer), messages.ObserveServers{Known: known})
}

func (s servers) Sweep(ctx context.Context, m messages.SweepConnections) (messages.Swept, error) {
	return client.Ask[messages.Swept](ctx, s.life.Ref(s.config.Observer), m)
}

func (s servers) Kick(ctx context.Context, connections []messages.ConnectionRef) ([]messages.KickResult, error) {
	answer, err := client.Ask[messages.Kicked](ctx, s.life.Ref(s.config.Evictor), messages.KickConnections{Connections: connections})
	return answer.Results, err
}

// responders asks presence, which has every process of the space settle.
type responders struct{ presence supervisor.Ref }

// Settle is evict.Responders.
func (r responders) Settle(ctx context.Context, m messages.SettleResponders) (messages.Settled, error) {
	return client.Ask[messages.Settled](ctx, r.presence, m)
}
