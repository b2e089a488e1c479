package callout

import (
	"context"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// workers is how many decisions one responder has begun and not seen worked off by
// the server. A worker mostly waits for the broker, for its reads and for its answer,
// so there are far more than cores: in a storm the broker takes a second for each. But
// the more there are, the older are the answers that the broker still has to look at.
const workers = 128

// closeWithin covers the longest decision and the flush behind it.
const closeWithin = 10 * time.Second

// Config is what every responder of a space shares.
type Config struct {
	Dialer   *broker.Dialer
	Opener   *connect.Opener
	Verifier Verifier
	Judge    *connect.Judge
	Answerer *connect.Answerer
	// Denials keeps why connects were not admitted.
	Denials *connect.Denials
	// Metrics counts outcomes; nil counts nothing.
	Metrics *Metrics
	// Reader is the path of the actor that reads what the authority holds.
	Reader string
	// Plain, when not nil, keeps responders out of the queue group: they hear every
	// request, as those of all other processes do, and the first answer wins. It is for
	// where nobody can drop the connections of a process that stands still. The
	// responders of a process share it.
	Plain *Once
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Spec describes the i-th responder, counted from 1.
func Spec(i int, config Config) supervisor.Spec {
	if config.Now == nil {
		config.Now = time.Now
	}
	return supervisor.Spec{
		Name:        strconv.Itoa(i),
		CloseWithin: closeWithin,
		New: func(life *supervisor.Life) actor.Actor {
			return newResponder(life, i, config)
		},
	}
}

// responder is one life.
type responder struct {
	*client.Client
	life     *supervisor.Life
	intake   *intake
	decision *decision
	begun    *begun
}

func newResponder(life *supervisor.Life, i int, config Config) *responder {
	r := &responder{life: life, decision: newDecision(life, config), begun: newBegun()}
	role := broker.Callout(i)
	if config.Plain != nil {
		role = broker.PlainCallout(i)
	}
	r.intake = newIntake(config.Plain, connect.NewQueue(connect.QueueConfig[*arrival]{Now: config.Now, Shed: r.decision.shed}))
	able := &ability{life: life, reader: r.decision.reader, intake: r.intake, fail: func(err error) { r.Fail(err) }}
	r.decision.noted = able.noted
	r.Client = client.New(life, config.Dialer, role, broker.Use{Prove: r.intake.join, Retire: r.intake.leave})
	return r
}

// Receive answers SettleDecisions with Settled. Connects come over the connection.
func (r *responder) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *supervisor.Open:
		for range workers {
			r.life.Go("decide", r.work)
		}
		r.Client.Receive(ctx.Message())
	case messages.SettleDecisions:
		r.Serve(ctx.Sender(), "settle decisions", func(ctx context.Context, _ *broker.Conn) (any, error) { return r.settle(ctx) })
	case *supervisor.Drain:
		r.life.Go("drain", r.drain)
	default:
		r.Client.Receive(ctx.Message())
	}
}

// drain leaves the queue group and returns when all that was accepted is answered.
func (r *responder) drain(ctx context.Context) {
	r.life.Drained(r.intake.shut(ctx))
}

// work decides one request after another until the life ends.
func (r *responder) work(ctx context.Context) {
	for {
		a, deadline, err := r.intake.queue.Take(ctx)
		if err != nil {
			return
		}
		ended := r.begun.decision()
		if r.decision.make(ctx, a, deadline) {
			a.confirmed(ctx)
		}
		ended()
		a.done()
	}
}
