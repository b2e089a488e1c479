package observer

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Config is what the observer needs.
type Config struct {
	Dialer *broker.Dialer
	// Account gives the public key of an account of the space: Material.Account.
	Account func(trust.Account) string
}

// Spec describes the observer as a child.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{
		Name: "observer",
		New:  func(life *supervisor.Life) actor.Actor { return newObserver(life, config) },
	}
}

// observer is one life.
type observer struct {
	*client.Client
	config Config
}

func newObserver(life *supervisor.Life, config Config) *observer {
	return &observer{
		Client: client.New(life, config.Dialer, broker.Observer(), broker.Use{Prove: prove}),
		config: config,
	}
}

// Receive answers ObserveServers with Roster, SweepConnections with Swept and
// AskLiveness with Liveness, or with an error when no server could be asked.
func (o *observer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.ObserveServers:
		o.Serve(ctx.Sender(), "observe the servers", func(ctx context.Context, conn *broker.Conn) (any, error) {
			return sweep.NewObserver(conn.NATS(), 0).Roster(ctx, m.Known)
		})
	case messages.SweepConnections:
		o.Serve(ctx.Sender(), "sweep "+m.Account, func(ctx context.Context, conn *broker.Conn) (any, error) {
			return o.sweep(ctx, conn, m)
		})
	case messages.AskLiveness:
		o.Serve(ctx.Sender(), "look for a connection", func(ctx context.Context, conn *broker.Conn) (any, error) {
			return sweep.NewObserver(conn.NATS(), 0).Liveness(ctx, o.config.Account(trust.CTRL), m.Connection, m.Lost)
		})
	default:
		o.Client.Receive(m)
	}
}

// sweep asks who the servers are, and then each for its connections.
func (o *observer) sweep(ctx context.Context, conn *broker.Conn, m messages.SweepConnections) (messages.Swept, error) {
	account := trust.Account(m.Account)
	switch account {
	case trust.DATA, trust.CTRL, trust.AUTH:
	default:
		return messages.Swept{}, messages.Malformed.Because("account %q is not one that is swept", m.Account)
	}
	ask := sweep.NewObserver(conn.NATS(), 0)
	roster, err := ask.Roster(ctx, m.Known)
	if err != nil {
		return messages.Swept{}, err
	}
	return ask.Connections(ctx, o.config.Account(account), roster, m.Targets)
}

// prove makes sure that a server answers before anybody relies on the connection.
func prove(ctx context.Context, conn *broker.Conn) error {
	return sweep.NewObserver(conn.NATS(), 0).Prove(ctx)
}
