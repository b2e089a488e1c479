package admin

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/claim"
	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/rail"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Name is the child's.
const Name = "admin"

// lookEvery is how often the claim is asked whether this process holds the plane,
// until it does: its word may be lost, and a life that follows a dead one gets none.
const lookEvery = time.Second

// Config is what the rail needs.
type Config struct {
	Dialer *broker.Dialer
	Space  string
	// Callers is the public key of the account whose users may ask.
	Callers string
	// Paths of the actors that are asked: who reads and who writes, who knows the plane's
	// operations, and who knows whether this process holds the plane.
	Reader, Writer, Desk, Claim string
}

// Spec describes the rail as a child of the plane.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{Name: Name, New: func(life *supervisor.Life) actor.Actor { return newAdmin(life, config) }}
}

// admin is one life.
type admin struct {
	*client.Client
	life   *supervisor.Life
	config Config
	stands *stands
	// nudge asks to look again whether the plane is held; capacity 1, one hint is
	// enough.
	nudge chan struct{}
}

func newAdmin(life *supervisor.Life, config Config) *admin {
	a := &admin{life: life, config: config, nudge: make(chan struct{}, 1)}
	a.stands = newStands(life, rail.New(rail.Config{
		Space: config.Space, Callers: config.Callers, OperationOf: ledger.OperationOf,
		Authority: authority{reader: life.Ref(config.Reader), writer: life.Ref(config.Writer), desk: life.Ref(config.Desk)},
	}), config.Space)
	a.Client = client.New(life, config.Dialer, broker.Admin(), broker.Use{Prove: a.stands.join, Retire: a.stands.leave})
	return a
}

// quiet tells the life that nothing is asked or answered any more, and that it may
// close.
type quiet struct{ close *supervisor.Close }

// Receive has no requests of its own: those come over the broker.
func (a *admin) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *supervisor.Open:
		a.life.Go("await the plane", a.await)
		a.Client.Receive(m)
	case messages.PlaneHeld:
		select {
		case a.nudge <- struct{}{}:
		default:
		}
	case *supervisor.Close:
		a.life.Go("fall silent", func(ctx context.Context) {
			a.stands.end(ctx)
			a.life.Tell(quiet{m})
		})
	case quiet:
		a.Client.Receive(m.close)
	default:
		a.Client.Receive(m)
	}
}

// await begins to serve once this process holds the plane.
func (a *admin) await(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		_, err := client.Ask[messages.Owed](ctx, a.life.Ref(a.config.Claim), claim.ReadOwed{})
		if err == nil {
			if err := a.stands.serve(ctx); err != nil && ctx.Err() == nil {
				a.Fail(err)
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-a.nudge:
		case <-tick.C:
		}
	}
}
