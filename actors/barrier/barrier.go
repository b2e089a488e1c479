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
	// Claim is the path of the actor that is nudged when the record of the plane moves,
	// and Desk of the one that is when a retirement is asked for.
	Claim, Desk string
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
	desk   supervisor.Ref
	vigils client.Vigils
	proofs proofs
}

func newBarrier(life *supervisor.Life, config Config) *barrier {
	b := &barrier{config: config, claim: life.Ref(config.Claim), desk: life.Ref(config.Desk)}
	b.Client = client.New(life, config.Dialer, broker.Barrier(config.Stream.Instance), broker.Use{
		Prove:  b.prove,
		Retire: b.vigils.Forget,
	})
	return b
}

// ReadEnds asks where the streams end that services write: everything acknowledged
// before it was asked lies before. Answered by Ends.
type ReadEnds struct{}

// Ends answers ReadEnds with a sequence for each stream by its name.
type Ends struct{ Streams map[string]uint64 }

// Receive answers what Over asks, and ReadEnds.
func (b *barrier) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case get:
		b.serve(ctx, "get "+m.key, func(ctx context.Context, s *stream.Backend) (any, error) {
			read := s.Get
			if m.latest {
				read = s.Latest
			}
			row, found, err := read(ctx, m.key)
			return got{row, found}, err
		})
	case list:
		b.serve(ctx, "list "+m.filter, func(ctx context.Context, s *stream.Backend) (any, error) {
			read := s.List
			if m.latest {
				read = s.ListLatest
			}
			keys, err := read(ctx, m.filter)
			return listed{keys}, err
		})
	case send:
		b.serve(ctx, "write", func(ctx context.Context, s *stream.Backend) (any, error) {
			revision, err := s.Send(ctx, m.batch)
			return sent{revision}, err
		})
	case proveLeader:
		b.Serve(ctx.Sender(), "prove the leader", func(ctx context.Context, conn *broker.Conn) (any, error) {
			return synced{}, b.proofs.share(ctx, conn, func(ctx context.Context) error { return b.proveLeader(ctx, conn) })
		})
	case ReadEnds:
		records := b.config.Stream.Records()
		b.over(ctx, "read the ends", records, ends(records))
	default:
		b.Client.Receive(m)
	}
}

func (b *barrier) serve(ctx actor.Context, name string, do func(context.Context, *stream.Backend) (any, error)) {
	b.over(ctx, name, b.config.Stream, do)
}

// over works on one of the two streams, once the authority stream is proved.
func (b *barrier) over(ctx actor.Context, name string, of stream.Config, do func(context.Context, *stream.Backend) (any, error)) {
	b.Serve(ctx.Sender(), name, func(ctx context.Context, conn *broker.Conn) (any, error) {
		if err := b.vigils.Hold(ctx, b.Client, conn); err != nil {
			return nil, err
		}
		return do(ctx, stream.New(conn.NATS(), of, b.config.Lanes))
	})
}

// proveLeader proves who leads the authority stream, once that is proved.
func (b *barrier) proveLeader(ctx context.Context, conn *broker.Conn) error {
	if err := b.vigils.Hold(ctx, b.Client, conn); err != nil {
		return err
	}
	return stream.New(conn.NATS(), b.config.Stream, b.config.Lanes).Sync(ctx)
}

// ends writes a row that says nothing but that all else was written before: where a
// stream ends is what a quorum has taken, and no leader's word.
func ends(of stream.Config) func(context.Context, *stream.Backend) (any, error) {
	return func(ctx context.Context, s *stream.Backend) (any, error) {
		end, err := s.Milestone(ctx)
		return Ends{Streams: map[string]uint64{of.Name(): end.Revision}}, err
	}
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
	return b.listen(conn)
}

// listen passes nudges on; who gets them also looks by himself.
func (b *barrier) listen(conn *broker.Conn) error {
	_, err := conn.NATS().Subscribe(b.config.Stream.Changed(ledger.PlaneKey), func(*nats.Msg) {
		_ = supervisor.Tell(b.claim, messages.PlaneChanged{})
	})
	if err == nil && b.config.Desk != "" {
		_, err = conn.NATS().Subscribe(b.config.Stream.Changed(ledger.AllAsked), func(*nats.Msg) {
			_ = supervisor.Tell(b.desk, messages.RetirementsAsked{})
		})
	}
	return err
}
