package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/supervisor"
)

// counter counts. Its state is rebuilt with each life.
type counter struct {
	life *supervisor.Life
	n    int
}

type (
	increment struct{}
	stumble   struct{}
)

func (c *counter) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *supervisor.Open:
		c.life.Opened()
	case increment:
		c.n++
		ctx.Respond(c.n)
	case stumble:
		panic("stumbled")
	case *supervisor.Close:
		c.life.ClosedWith(nil)
	}
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))

	tree, err := supervisor.Start(ctx, system, supervisor.Spec{Name: "app", Group: &supervisor.Group{
		Children: []supervisor.Spec{
			{Name: "counter", New: func(l *supervisor.Life) actor.Actor { return &counter{life: l} }},
		},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	events := tree.Events(16)
	defer events.Close()

	to, _ := tree.Ref("counter")
	n, err := supervisor.Ask[int](ctx, to, increment{})
	fmt.Println(n, err)

	// A message that panics the actor is answered, and not tried again.
	_, err = supervisor.Ask[int](ctx, to, stumble{})
	fmt.Println(err, errors.Is(err, supervisor.ErrUnavailable))
	for e := range events.All(ctx) {
		if _, ok := e.(supervisor.Opened); ok {
			break
		}
		fmt.Println(e)
	}

	// The same ref reaches the next life, which begins anew.
	n, err = supervisor.Ask[int](ctx, to, increment{})
	fmt.Println(n, err)

	fmt.Println(tree.Close(ctx))
	<-tree.Closed()

	// Output:
	// 1 <nil>
	// counter: unavailable, asked and not answered true
	// counter$1 died: run counter: panic in receive: stumbled
	// counter$1 restarting in 0s (restart 1): run counter: panic in receive: stumbled
	// counter$2 opening
	// 1 <nil>
	// <nil>
}
