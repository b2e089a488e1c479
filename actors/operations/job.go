package operations

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/supervisor"
)

// Job is what one call does, over a connection of its own.
type Job struct {
	// Kind begins the name of the call's actor, and On says in errors what it is about.
	Kind, On string
	// Role is what the connection may do: a short-lived one, that never comes back.
	Role broker.Role
	// Prove makes sure of what is behind the new connection; nil for nothing.
	Prove func(ctx context.Context, conn *broker.Conn) error
	// Ask is what the actor is asked.
	Ask any
	// Do answers it. It is called once at most, on a goroutine that the actor waits for,
	// with a context that ends when the time of the call is over or the space closes.
	Do func(ctx context.Context, at Site) (any, error)
}

// Site is where a job is done.
type Site struct {
	// Conn is the job's own, and closed for it.
	Conn *broker.Conn
	life *supervisor.Life
}

// Ref is another actor of the space.
func (s Site) Ref(path string) supervisor.Ref { return s.life.Ref(path) }

// Perform has an actor of its own do a job, and answers what it does. When it returns
// nothing of the actor is left, unless the space closes, which ends it. Besides what
// the job refuses with it fails with messages.ServiceClosing, ActorAway, BrokerAway,
// and with OutcomeUnknown when the actor died over the job.
func Perform[A any](ctx context.Context, c *Calls, tree *supervisor.Tree, job Job) (answer A, err error) {
	limited, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	name := fmt.Sprintf("%s-%d", job.Kind, c.count.Add(1))
	inside := c.order.enter()
	var conn held
	spec := supervisor.Spec{Name: name, Restart: supervisor.Never, New: func(life *supervisor.Life) actor.Actor {
		return &call{life: life, calls: c, job: job, place: inside, held: &conn}
	}}
	to, err := tree.Add(limited, Name, spec)
	if err != nil {
		inside.leave() // as its actor does at its end, if there was one
	} else {
		answer, err = client.Ask[A](limited, to, job.Ask)
		err = client.Unsaid(err)
		c.end(tree, name, &conn)
		if err == nil {
			return answer, nil
		}
	}
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	} else {
		err = client.Unopened(err)
	}
	return answer, fmt.Errorf("%s of %s: %w", job.Kind, job.On, err)
}

// Stream is the authority stream as a job may use it whose beat is that of an instance.
func (c *Calls) Stream(beat string) stream.Config {
	of := c.config.Stream
	of.Instance = beat
	return of
}

// Proved makes sure that the authority stream behind a connection is ours.
func (c *Calls) Proved(beat string) func(context.Context, *broker.Conn) error {
	return func(ctx context.Context, conn *broker.Conn) error {
		return stream.Prove(ctx, conn.NATS(), c.Stream(beat), c.config.Remembered())
	}
}

// Store reads and writes the authority stream over a job's connection.
func (c *Calls) Store(at Site, beat string) *ledger.Store {
	return ledger.NewStore(stream.New(at.Conn.NATS(), c.Stream(beat), c.config.Lanes), ledger.DefaultPatience())
}
