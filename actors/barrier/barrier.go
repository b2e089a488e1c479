package barrier

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Config is what the barrier needs.
type Config struct {
	Dialer *broker.Dialer
	// Stream says which authority stream.
	Stream stream.Config
	// Lanes bounds the batches that this process has open.
	Lanes *stream.Lanes
	// Claim is the path of the actor that is nudged when the record of the plane moves.
	Claim string
	// Authority and Records remember which lives of the two streams are ours.
	Authority, Records Installation
}

// Installation keeps, across restarts of the process, which stream was met.
type Installation interface {
	Remembered() stream.Installation
	Remember(stream.Installation) error
}

// Spec describes the barrier as a child.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{
		Name: "barrier",
		New:  func(life *supervisor.Life) actor.Actor { return newBarrier(life, config) },
	}
}

// barrier is one life.
type barrier struct {
	*client.Client
	config Config
	claim  supervisor.Ref
	vigils client.Vigils
}

func newBarrier(life *supervisor.Life, config Config) *barrier {
	b := &barrier{config: config, claim: life.Ref(config.Claim)}
	b.Client = client.New(life, config.Dialer, broker.Barrier(config.Stream.Instance), broker.Use{
		Prove:  b.prove,
		Retire: b.vigils.Forget,
	})
	return b
}

// Receive answers what Over asks.
func (b *barrier) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case get:
		b.serve(ctx, "get "+m.key, func(ctx context.Context, s *stream.Backend) (any, error) {
			row, found, err := s.Get(ctx, m.key)
			return got{row, found}, err
		})
	case list:
		b.serve(ctx, "list "+m.filter, func(ctx context.Context, s *stream.Backend) (any, error) {
			keys, err := s.List(ctx, m.filter)
			return listed{keys}, err
		})
	case send:
		b.serve(ctx, "write", func(ctx context.Context, s *stream.Backend) (any, error) {
			revision, err := s.Send(ctx, m.batch)
			return sent{revision}, err
		})
	case proveLeader:
		b.serve(ctx, "prove the leader", func(ctx context.Context, s *stream.Backend) (any, error) {
			return synced{}, s.Sync(ctx)
		})
	default:
		b.Client.Receive(m)
	}
}

func (b *barrier) serve(ctx actor.Context, name string, do func(context.Context, *stream.Backend) (any, error)) {
	b.Serve(ctx.Sender(), name, func(ctx context.Context, conn *broker.Conn) (any, error) {
		if err := b.vigils.Hold(ctx, b.Client, conn); err != nil {
			return nil, err
		}
		return do(ctx, stream.New(conn.NATS(), b.config.Stream, b.config.Lanes))
	})
}

// prove makes sure of both streams behind a new connection, makes the one for
// records where there is none, and listens for the claim.
func (b *barrier) prove(ctx context.Context, conn *broker.Conn) error {
	remembered := b.config.Records.Remembered()
	met, err := stream.Open(ctx, conn.NATS(), b.config.Stream.Records(), remembered)
	if err != nil {
		return err
	}
	if met != remembered {
		if err := b.config.Records.Remember(met); err != nil {
			return err
		}
	}
	b.vigils.Keep(conn, b.config.Stream, b.config.Authority.Remembered)
	_, err = conn.NATS().Subscribe(b.config.Stream.Changed(ledger.PlaneKey), func(*nats.Msg) {
		_ = supervisor.Tell(b.claim, messages.PlaneChanged{}) // the claim also asks by itself
	})
	return err
}
