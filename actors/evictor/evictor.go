package evictor

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Config is what the evictor needs.
type Config struct {
	Dialer *broker.Dialer
}

// Spec describes the evictor as a child.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{
		Name: "evictor",
		New: func(life *supervisor.Life) actor.Actor {
			return &evictor{client.New(life, config.Dialer, broker.Evictor(), broker.Use{Prove: prove})}
		},
	}
}

// evictor is one life.
type evictor struct{ *client.Client }

// Receive answers KickConnections with Kicked, or with an error when the servers
// could not be asked.
func (e *evictor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.KickConnections:
		e.Serve(ctx.Sender(), "kick connections", func(ctx context.Context, conn *broker.Conn) (any, error) {
			results, err := sweep.Kick(ctx, conn.NATS(), m.Connections)
			return messages.Kicked{Results: results}, err
		})
	default:
		e.Client.Receive(m)
	}
}

func prove(ctx context.Context, conn *broker.Conn) error { return sweep.ProveKick(ctx, conn.NATS()) }
