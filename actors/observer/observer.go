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
	// NoSystem says that there is no way into the system account: then it observes CTRL
	// alone, from within, and cannot say who the servers are.
	NoSystem bool
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
	o := &observer{config: config}
	role := broker.Observer()
	if config.NoSystem {
		role = broker.OwnObserver()
	}
	// A server must answer before anybody relies on the connection.
	prove := func(ctx context.Context, conn *broker.Conn) error { return o.eyes(conn).Prove(ctx) }
	o.Client = client.New(life, config.Dialer, role, broker.Use{Prove: prove})
	return o
}

// eyes asks over a connection, as far as that may.
func (o *observer) eyes(conn *broker.Conn) *sweep.Observer {
	if o.config.NoSystem {
		return sweep.NewOwnObserver(conn.NATS(), 0)
	}
	return sweep.NewObserver(conn.NATS(), 0)
}

// Receive answers ObserveServers with Roster, SweepConnections with Swept and
// AskLiveness with Liveness, or with an error when no server could be asked. Without
// a way into the system account only AskLiveness is answered, and the others are
// refused with SystemAbsent.
func (o *observer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.ObserveServers:
		o.Serve(ctx.Sender(), "observe the servers", func(ctx context.Context, conn *broker.Conn) (any, error) {
			if o.config.NoSystem {
				return nil, messages.SystemAbsent
			}
			return o.eyes(conn).Roster(ctx, m.Known)
		})
	case messages.SweepConnections:
		o.Serve(ctx.Sender(), "sweep "+m.Account, func(ctx context.Context, conn *broker.Conn) (any, error) {
			return o.sweep(ctx, conn, m)
		})
	case messages.AskLiveness:
		o.Serve(ctx.Sender(), "look for a connection", func(ctx context.Context, conn *broker.Conn) (any, error) {
			return o.eyes(conn).Liveness(ctx, o.config.Account(trust.CTRL), m.Connection, m.Lost)
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
	if o.config.NoSystem {
		return messages.Swept{}, messages.SystemAbsent
	}
	ask := o.eyes(conn)
	roster, err := ask.Roster(ctx, m.Known)
	if err != nil {
		return messages.Swept{}, err
	}
	return ask.Connections(ctx, o.config.Account(account), roster, m.Targets)
}
