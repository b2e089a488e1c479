// Package registrar is the actor that registers this process as its instance of the
// endpoint `auth`. Each start advances the instance's process epoch, so that a
// process which was taken for dead and comes back finds itself fenced.
//
// Its connection lives for the registration alone.
package registrar

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Endpoint is the service that this process is an instance of.
const Endpoint = "auth"

// Config is what the registrar needs.
type Config struct {
	Dialer *broker.Dialer
	// Stream says which authority stream, and which instance this is.
	Stream stream.Config
	// Lanes bounds the batches that this process has open.
	Lanes *stream.Lanes
	// Registered tells whether this process has registered before in this run: a
	// restarted registrar must not fence the process it lives in.
	Registered *Once
}

// Once remembers the registration of a process, over all lives of its registrar.
// The zero value is ready; only one life uses it at a time.
type Once struct{ done bool }

// Spec describes the registrar as a child.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{
		Name: "registrar",
		New:  func(life *supervisor.Life) actor.Actor { return &registrar{life, config} },
	}
}

// registrar is one life.
type registrar struct {
	life   *supervisor.Life
	config Config
}

// Receive registers when it opens; there is nothing else to ask of it.
func (r *registrar) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *supervisor.Open:
		r.life.Go("register", r.open)
	case *supervisor.Drain:
		r.life.Drained(nil)
	case *supervisor.Close:
		r.life.ClosedWith(nil)
	}
}

func (r *registrar) open(ctx context.Context) {
	if !r.config.Registered.done {
		if err := r.register(ctx); err != nil {
			if broker.IsAway(err) {
				err = supervisor.Outage(err)
			}
			r.life.Fail(err)
			return
		}
		r.config.Registered.done = true
	}
	r.life.Opened()
}

// register opens the connection, registers, and closes it in every outcome.
func (r *registrar) register(ctx context.Context) (err error) {
	instance := r.config.Stream.Instance
	conn, err := r.config.Dialer.Dial(ctx, broker.Registration(instance), func(c *broker.Conn) error { return r.life.Hold(c) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	store := ledger.NewStore(stream.New(conn.NATS(), r.config.Stream, r.config.Lanes), ledger.DefaultPatience())
	_, err = ledger.NewRegistrar(store, nil, nil).Over(conn.User()).Register(ctx, messages.RegisterInstance{
		Endpoint: Endpoint, Instance: instance, Principal: messages.Principal{Owner: names.LocalOwner, Actor: Endpoint},
	})
	if err != nil {
		return fmt.Errorf("register %s.%s: %w", Endpoint, instance, err)
	}
	return nil
}
