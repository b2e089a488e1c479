package operations

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Name of the group, which is also its path.
const Name = "operations"

const (
	// callWithin bounds a call. Its connection lives for a minute.
	callWithin = 55 * time.Second
	// workWithin leaves time to answer.
	workWithin = 50 * time.Second
	// removeWithin is more than the close of a call's actor takes.
	removeWithin = 2 * supervisor.DefaultCloseWithin
)

// Config is what the calls need.
type Config struct {
	Dialer *broker.Dialer
	// Stream says which authority stream, and Remembered which life of it is ours.
	Stream     stream.Config
	Remembered func() stream.Installation
	// Lanes bounds the batches that this process has open.
	Lanes *stream.Lanes
	// Paths of the actors that are asked whether somebody is connected.
	Observer, Evictor, Presence, Writer string
	// CalloutUsers are the public keys of the users that may answer connects.
	CalloutUsers []string
	// Outlives is the longest life of a connection where the servers cannot be asked who
	// is connected; 0 where they can be.
	Outlives time.Duration
	// Closing is closed when the space closes: from then on that ends the calls' actors.
	Closing <-chan struct{}
}

// Calls are the calls of one space, over all lives of the group.
type Calls struct {
	config Config
	count  atomic.Uint64
	order  order
	seen   seen
}

// New takes what the calls need.
func New(config Config) *Calls { return &Calls{config: config} }

// Spec describes the group as a child of its space.
func Spec() supervisor.Spec {
	return supervisor.Spec{Name: Name, Restart: supervisor.Escalate, Group: &supervisor.Group{Dynamic: true}}
}

// Register makes the caller the one process of an instance. Besides the refusals of
// messages.RegisterInstance it fails with ServiceClosing, ActorAway, BrokerAway, and
// with OutcomeUnknown when the call's actor died over it.
func (c *Calls) Register(ctx context.Context, tree *supervisor.Tree, ask messages.RegisterInstance) (messages.InstanceRegistered, error) {
	return c.perform(ctx, tree, "registration", ask.Endpoint, ask.Instance, ask)
}

// Repair opens a gate that a registration left frozen. Besides the refusals of
// messages.ReconcileInstance it fails as Register does.
func (c *Calls) Repair(ctx context.Context, tree *supervisor.Tree, ask messages.ReconcileInstance) (messages.InstanceRegistered, error) {
	return c.perform(ctx, tree, "repair", ask.Endpoint, ask.Instance, ask)
}

// perform has an actor of its own answer m. When it returns nothing of the actor is
// left, unless the space closes, which ends it.
func (c *Calls) perform(ctx context.Context, tree *supervisor.Tree, kind, endpoint, instance string, m any) (messages.InstanceRegistered, error) {
	limited, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	name := fmt.Sprintf("%s-%d", kind, c.count.Add(1))
	inside := c.order.enter()
	var conn held
	spec := supervisor.Spec{Name: name, Restart: supervisor.Never, New: func(life *supervisor.Life) actor.Actor {
		return &call{life: life, calls: c, endpoint: endpoint, instance: instance, place: inside, held: &conn}
	}}
	to, err := tree.Add(limited, Name, spec)
	if err != nil {
		inside.leave() // as its actor does at its end, if there was one
	} else {
		var answer messages.InstanceRegistered
		answer, err = client.Ask[messages.InstanceRegistered](limited, to, m)
		err = client.Unsaid(err)
		c.end(tree, name, &conn)
		if err == nil {
			return answer, nil
		}
	}
	switch {
	case ctx.Err() != nil:
		err = errors.Join(context.Cause(ctx), err)
	case errors.Is(err, supervisor.ErrNoSuchActor):
		err = messages.ServiceClosing.From(err)
	default:
		err = refusal(err)
	}
	return messages.InstanceRegistered{}, fmt.Errorf("%s of %s at %s: %w", kind, instance, endpoint, err)
}

// refusal says of an actor that could not be opened, for no reason that the catalogue
// knows, that it died.
func refusal(err error) error {
	err = client.Refusal(err)
	if errors.Is(err, messages.InternalFault) {
		err = messages.ActorAway.From(err)
	}
	return err
}

// held is the connection of a call, once it has one.
type held struct{ atomic.Pointer[broker.Conn] }

// end closes the actor of a call, whatever becomes of its caller. One that died is
// gone already, and how one died over its close is told by the tree's events. One that
// does not end has its connection cut, and ends of that.
func (c *Calls) end(tree *supervisor.Tree, name string, h *held) {
	select {
	case <-c.config.Closing:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
	defer cancel()
	path := Name + "/" + name
	if conn := h.Load(); tree.Remove(ctx, path) != nil && conn != nil {
		conn.Sever()
		<-conn.Ended()
		_ = tree.Remove(ctx, path) // what does not end even so the close of the space names
	}
}
