package devbroker

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/supervisor"
)

// Spec describes the leaf that keeps server running under a name. Each life is one
// Run: after a death it listens at the same address and has the same streams. It
// answers no message.
func Spec(name string, server *Server) supervisor.Spec {
	return supervisor.Spec{
		Name:  name,
		Label: label,
		New:   func(life *supervisor.Life) actor.Actor { return &leaf{life: life, server: server} },
	}
}

// leaf is one life.
type leaf struct {
	life   *supervisor.Life
	server *Server
	run    *Run // nil until it runs
	// closing says that the end of the run is wanted.
	closing bool
}

// running says that a run has begun, ended that it is over.
type (
	running struct{ run *Run }
	ended   struct{ err error }
)

var errEnded = errors.New("the development broker has ended")

func (l *leaf) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *supervisor.Open:
		l.life.Go("run", l.keep)
	case running:
		l.run = m.run
		l.life.Opened()
	case ended:
		if !l.closing {
			l.life.Fail(errors.Join(errEnded, m.err))
		}
	case *supervisor.Drain:
		l.life.Drained(nil)
	case *supervisor.Close:
		l.closing = true
		run := l.run
		l.life.Go("stop", func(ctx context.Context) { l.stop(ctx, run, m) })
	}
}

// keep begins a run, gives it into custody, and says when it has ended.
func (l *leaf) keep(ctx context.Context) {
	run, err := l.server.Start(ctx)
	if err != nil {
		l.life.Fail(err)
		return
	}
	if err := l.life.Hold(run); err != nil {
		return // it was severed: the life is over
	}
	l.life.Tell(running{run})
	<-run.Ended()
	l.life.Tell(ended{run.Err()})
}

func (l *leaf) stop(ctx context.Context, run *Run, m *supervisor.Close) {
	if run == nil {
		l.life.ClosedWith(nil)
		return
	}
	ctx, cancel := context.WithDeadline(ctx, m.Deadline)
	defer cancel()
	l.life.ClosedWith(run.Stop(ctx))
}
