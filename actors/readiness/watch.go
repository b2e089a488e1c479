package readiness

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/probe"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// watch is one life of the actor that asks one service.
type watch struct{ *client.Client }

func spec(name, endpoint string, dialer *broker.Dialer) supervisor.Spec {
	return supervisor.Spec{Name: name, New: func(life *supervisor.Life) actor.Actor {
		return &watch{client.New(life, dialer, broker.PlatformReadiness(endpoint), broker.Use{})}
	}}
}

// Receive answers ReadReadiness with Readiness.
func (w *watch) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.ReadReadiness:
		w.Serve(ctx.Sender(), "ask "+m.Endpoint, func(ctx context.Context, conn *broker.Conn) (any, error) {
			return probe.Ask(ctx, conn.NATS(), m)
		})
	default:
		w.Client.Receive(m)
	}
}
