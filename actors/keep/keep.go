// Package keep is the actor that keeps something running which knows nothing of actors:
// it starts it, holds it in custody, fails with it, and stops it.
package keep

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/supervisor"
)

// Run is what is kept, from its start to its end.
type Run interface {
	supervisor.Resource
	// Stop ends it in order, and returns when it has ended or ctx has.
	Stop(ctx context.Context) error
	// Err says why it ended; nil if it was stopped.
	Err() error
}

// Config says what is kept.
type Config struct {
	// Name is the child's, and Label what inventories call its runs.
	Name, Label string
	// Start begins a run. It is called once for each life.
	Start func(ctx context.Context) (Run, error)
	// Gone is what a life fails with whose run ended by itself.
	Gone error
}

// Spec describes the child. Each life is one run. It answers no message.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{
		Name:  config.Name,
		Label: config.Label,
		New:   func(life *supervisor.Life) actor.Actor { return &keeper{life: life, config: config} },
	}
}

// keeper is one life.
type keeper struct {
	life   *supervisor.Life
	config Config
	run    Run // nil until it runs
	// closing says that the end of the run is wanted.
	closing bool
}

// running says that a run has begun, ended that it is over.
type (
	running struct{ run Run }
	ended   struct{ err error }
)

func (k *keeper) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *supervisor.Open:
		k.life.Go("run", k.keep)
	case running:
		k.run = m.run
		k.life.Opened()
	case ended:
		if !k.closing {
			k.life.Fail(errors.Join(k.config.Gone, m.err))
		}
	case *supervisor.Drain:
		k.life.Drained(nil)
	case *supervisor.Close:
		k.closing = true
		run := k.run
		k.life.Go("stop", func(ctx context.Context) { k.stop(ctx, run, m) })
	}
}

// keep begins a run, gives it into custody, and says when it has ended.
func (k *keeper) keep(ctx context.Context) {
	run, err := k.config.Start(ctx)
	if err != nil {
		k.life.Fail(err)
		return
	}
	if err := k.life.Hold(run); err != nil {
		return // it was severed: the life is over
	}
	k.life.Tell(running{run})
	<-run.Ended()
	k.life.Tell(ended{run.Err()})
}

func (k *keeper) stop(ctx context.Context, run Run, m *supervisor.Close) {
	if run == nil {
		k.life.ClosedWith(nil)
		return
	}
	ctx, cancel := context.WithDeadline(ctx, m.Deadline)
	defer cancel()
	k.life.ClosedWith(run.Stop(ctx))
}
