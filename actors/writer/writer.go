package writer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// openWithin covers the making of the stream, which a cluster takes its time for.
const openWithin = 15 * time.Second

// Config is what the writer needs.
type Config struct {
	Dialer *broker.Dialer
	// Stream says which authority stream.
	Stream stream.Config
	// Lanes bounds the batches that this process has open.
	Lanes *stream.Lanes
	// Installation remembers which life of the stream is ours.
	Installation Installation
	// Unreadable is told of every row that could not be read.
	Unreadable func(log *slog.Logger, keys ...string)
}

// Installation keeps, across restarts of the process, which stream was met. It is
// safe for concurrent use.
type Installation interface {
	Remembered() stream.Installation
	// Remember returns when it is durable.
	Remember(stream.Installation) error
}

// Spec describes the writer as a child.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{
		Name:       "writer",
		OpenWithin: openWithin,
		New:        func(life *supervisor.Life) actor.Actor { return newWriter(life, config) },
	}
}

// writer is one life.
type writer struct {
	*client.Client
	life   *supervisor.Life
	config Config
	vigils client.Vigils
	// kept are the ledger's writers, one for each connection: whoever writes the same
	// rows at the same time queues in one.
	kept sync.Map // *broker.Conn to *ledger.Writer
}

func newWriter(life *supervisor.Life, config Config) *writer {
	w := &writer{life: life, config: config}
	role := broker.Writer(config.Stream.Instance)
	w.Client = client.New(life, config.Dialer, role, broker.Use{
		Prove:  w.prove,
		Retire: w.forget,
	})
	return w
}

// Receive answers each of the writer's messages as that message says, or with an error.
func (w *writer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.PutGrant:
		serve(w, ctx, "put grant "+m.Principal.String(), m, (*ledger.Writer).PutGrant)
	case messages.EditGrant:
		serve(w, ctx, "edit grant "+m.Principal.String(), m, (*ledger.Writer).EditGrant)
	case messages.RevokeGrant:
		serve(w, ctx, "revoke grant "+m.Principal.String(), m, (*ledger.Writer).RevokeGrant)
	case messages.AskRetirement:
		serve(w, ctx, "ask for the retirement of "+m.Principal.String(), m, (*ledger.Writer).AskRetirement)
	case messages.Unask:
		serve(w, ctx, "take back what was asked", m, (*ledger.Writer).Unask)
	case messages.LearnServers:
		serve(w, ctx, "learn servers", m, (*ledger.Writer).LearnServers)
	case messages.ReadRoster:
		serve(w, ctx, "read the roster", messages.LearnServers{}, (*ledger.Writer).LearnServers) // no new one
	case messages.ForgetServer:
		serve(w, ctx, "forget a server", m, (*ledger.Writer).ForgetServer)
	case ledger.MintDescendant:
		serve(w, ctx, "mint a credential of "+m.Principal.String(), m, (*ledger.Writer).MintDescendant)
	case ledger.RevokeCredential:
		serve(w, ctx, "revoke a credential of "+m.UID, m, revokeCredential)
	case ledger.ListProvisions:
		serve(w, ctx, "list footprints", m, (*ledger.Writer).ListProvisions)
	case ledger.ReadProvision:
		serve(w, ctx, "read a footprint", m, (*ledger.Writer).ReadProvision)
	case ledger.WriteProvision:
		serve(w, ctx, "write the footprint of "+m.Provision.Principal.String(), m, (*ledger.Writer).WriteProvision)
	case ledger.GrantProvision:
		serve(w, ctx, "grant the machine "+m.Provision.Principal.String(), m, (*ledger.Writer).GrantProvision)
	case messages.Enrol:
		serve(w, ctx, "enrol "+m.Principal.String(), m, (*ledger.Writer).Enrol)
	default:
		w.Client.Receive(m)
	}
}

// CredentialRevoked answers ledger.RevokeCredential.
type CredentialRevoked struct{}

func revokeCredential(w *ledger.Writer, ctx context.Context, m ledger.RevokeCredential) (CredentialRevoked, error) {
	return CredentialRevoked{}, w.RevokeCredential(ctx, m)
}

// serve makes one transition beside Receive.
func serve[M, A any](w *writer, ctx actor.Context, name string, m M, transition func(*ledger.Writer, context.Context, M) (A, error)) {
	w.Serve(ctx.Sender(), name, func(ctx context.Context, conn *broker.Conn) (any, error) {
		if err := w.vigils.Hold(ctx, w.Client, conn); err != nil {
			return nil, err
		}
		answer, err := transition(w.over(conn), ctx, m)
		w.config.Unreadable(w.life.Log(), ledger.CorruptKeys(err)...)
		return answer, err
	})
}

// over writes over one connection, always by the same of the ledger's writers.
func (w *writer) over(conn *broker.Conn) *ledger.Writer {
	if kept, found := w.kept.Load(conn); found {
		return kept.(*ledger.Writer)
	}
	backend := stream.New(conn.NATS(), w.config.Stream, w.config.Lanes)
	store := ledger.NewStore(backend, ledger.DefaultPatience())
	kept, _ := w.kept.LoadOrStore(conn, ledger.NewWriter(store, ledger.Options{Instance: w.config.Stream.Instance}))
	return kept.(*ledger.Writer)
}

// forget leaves an old connection.
func (w *writer) forget(ctx context.Context, old *broker.Conn) {
	w.vigils.Forget(ctx, old)
	w.kept.Delete(old)
}

// prove makes sure that the stream behind a new connection is ours, and remembers
// it the first time.
func (w *writer) prove(ctx context.Context, conn *broker.Conn) error {
	remembered := w.config.Installation.Remembered()
	met, err := stream.Open(ctx, conn.NATS(), w.config.Stream, remembered)
	if err == nil && met != remembered {
		err = w.config.Installation.Remember(met)
	}
	if err == nil {
		w.vigils.Keep(conn, w.config.Stream, w.config.Installation.Remembered)
	}
	return err
}
