package runs

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/run"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// ObserverName is the observer's name among the children of its space, and its path.
const ObserverName = "run-observer"

// Observer describes the observer as a child of its space. What it saw lasts for as long
// as this life.
func Observer(dialer *broker.Dialer) supervisor.Spec {
	return supervisor.Spec{
		Name: ObserverName,
		New: func(life *supervisor.Life) actor.Actor {
			o := &observing{seen: run.NewObservations(nil)}
			o.Client = client.New(life, dialer, broker.RunObserver(), broker.Use{Prove: o.listen})
			return o
		},
	}
}

// observing is one life.
type observing struct {
	*client.Client
	seen *run.Observations
}

// Receive answers AwaitRequest with RequestSeen.
func (o *observing) Receive(ctx actor.Context) {
	if m, is := ctx.Message().(messages.AwaitRequest); is {
		o.Serve(ctx.Sender(), "await a request", func(ctx context.Context, _ *broker.Conn) (any, error) {
			return messages.RequestSeen{}, o.seen.Await(ctx, m)
		})
		return
	}
	o.Client.Receive(ctx.Message())
}

// listen hears what is asked over a new connection, before the old one goes: what both
// hear is the same request.
func (o *observing) listen(ctx context.Context, conn *broker.Conn) error {
	return Observe(ctx, conn.NATS(), o.seen)
}

// Observe takes note of every request that a connection hears, from when it returns.
func Observe(ctx context.Context, nc *nats.Conn, seen *run.Observations) error {
	_, err := nc.Subscribe(broker.RequestPattern, func(m *nats.Msg) {
		if len(m.Data) <= runrequest.MaxPayload {
			seen.See(messages.AwaitRequest{Subject: m.Subject, Digest: runrequest.Digest(m.Data)})
		}
	})
	if err == nil {
		err = nc.FlushWithContext(ctx)
	}
	return err
}
