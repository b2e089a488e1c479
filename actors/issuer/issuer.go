// Package issuer is the actor that issues to registered instances of services. Its
// connection stands ready beside the others, so that nobody waits for it.
//
// Whatever it issues is recorded through the gate of the instance before anything
// secret is released: whoever registers after finds it among what is to be revoked.
package issuer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/platform"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Config is what the issuer needs.
type Config struct {
	Dialer *broker.Dialer
	// Stream says which authority stream.
	Stream stream.Config
	// Lanes bounds the batches that this process has open.
	Lanes *stream.Lanes
	// Remembered tells which life of the stream is ours.
	Remembered func() stream.Installation
	// Reader and Writer are the paths of the actors that read what a principal may do, and
	// see to its root credential.
	Reader, Writer string
	// Signer signs bearers.
	Signer Signer
	// Longest is the longest life of a bearer, in whole seconds; 0 is
	// identity.MaxBearerLife.
	Longest time.Duration
	// Controllers is what controllers are answered with.
	Controllers controller.Config
	// Platform is the door of whoever hosts the space.
	Platform *platform.Door
	// Unreadable is told of every row that could not be read.
	Unreadable func(log *slog.Logger, keys ...string)
}

// Signer signs bearers; an *identity.Keyring does.
type Signer interface {
	Sign(identity.Bearer) (messages.Secret, error)
}

// Spec describes the issuer as a child.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{
		Name: "issuer",
		New:  func(life *supervisor.Life) actor.Actor { return newIssuer(life, config) },
	}
}

// issuer is one life.
type issuer struct {
	*client.Client
	life           *supervisor.Life
	config         Config
	reader, writer supervisor.Ref
	vigils         client.Vigils
	// kept are the stores, one for each connection: whoever writes the same rows at the
	// same time queues in one.
	kept sync.Map // *broker.Conn to *ledger.Store
}

func newIssuer(life *supervisor.Life, config Config) *issuer {
	i := &issuer{life: life, config: config, reader: life.Ref(config.Reader), writer: life.Ref(config.Writer)}
	i.Client = client.New(life, config.Dialer, broker.Issuer(config.Stream.Instance), broker.Use{Prove: i.prove, Retire: i.forget})
	return i
}

// Receive answers each of the issuer's messages as that message says, or with an error.
func (i *issuer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.IssueInstanceCredential:
		serve(i, ctx, "issue to "+m.Instance+" of "+m.Endpoint, m, i.issueToProcess)
	case messages.AskController:
		serve(i, ctx, "answer a controller", m, i.atDoor)
	case messages.AskPlatformController:
		serve(i, ctx, "answer the platform's controller", m, i.atPlatformDoor)
	case messages.CheckController:
		serve(i, ctx, "check a controller", m, i.recognize)
	case messages.CheckPlatformController:
		serve(i, ctx, "check the platform's controller", m, i.recognizePlatform)
	case messages.ListControllers:
		serve(i, ctx, "list controllers", m, i.listControllers)
	default:
		i.Client.Receive(m)
	}
}

// serve answers one request beside Receive, over a stream that is still ours.
func serve[M, A any](i *issuer, ctx actor.Context, name string, m M, do func(context.Context, *ledger.Store, M) (A, error)) {
	i.Serve(ctx.Sender(), name, func(ctx context.Context, conn *broker.Conn) (any, error) {
		if err := i.vigils.Hold(ctx, i.Client, conn); err != nil {
			return nil, err
		}
		answer, err := do(ctx, i.over(conn), m)
		i.config.Unreadable(i.life.Log(), ledger.CorruptKeys(err)...)
		return answer, err
	})
}

// over writes over one connection, always by the same store.
func (i *issuer) over(conn *broker.Conn) *ledger.Store {
	if kept, found := i.kept.Load(conn); found {
		return kept.(*ledger.Store)
	}
	store := ledger.NewStore(stream.New(conn.NATS(), i.config.Stream, i.config.Lanes), ledger.DefaultPatience())
	kept, _ := i.kept.LoadOrStore(conn, store)
	return kept.(*ledger.Store)
}

func (i *issuer) prove(_ context.Context, conn *broker.Conn) error {
	i.vigils.Keep(conn, i.config.Stream, i.config.Remembered)
	return nil
}

// forget leaves an old connection.
func (i *issuer) forget(ctx context.Context, old *broker.Conn) {
	i.vigils.Forget(ctx, old)
	i.kept.Delete(old)
}
