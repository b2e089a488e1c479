package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/supervisor"
)

// echo answers a number with itself.
func echo(ctx actor.Context) {
	if n, ok := ctx.Message().(int); ok {
		ctx.Respond(n)
	}
}

// leaf is an echo that lives in a tree.
type leaf struct{ life *supervisor.Life }

func (l *leaf) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *supervisor.Open:
		l.life.Opened()
	case *supervisor.Close:
		l.life.ClosedWith(nil)
	default:
		echo(ctx)
	}
}

// measureAsk compares a question to an actor in a tree with the library's own.
func measureAsk(t testing.TB, turns, n int) *Report {
	t.Helper()
	system := newSystem()
	t.Cleanup(system.Shutdown)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tree, err := supervisor.Start(ctx, system, supervisor.Spec{Name: "root", Group: &supervisor.Group{Children: []supervisor.Spec{
		{Name: "echo", New: func(life *supervisor.Life) actor.Actor { return &leaf{life} }},
	}}})
	must(t, err)
	defer func() { must(t, tree.Close(ctx)) }()
	to, _ := tree.Ref("echo")
	bare := system.Root.Spawn(actor.PropsFromFunc(echo))
	defer system.Root.Stop(bare)

	r := &Report{
		Title: "a question to an actor and its answer",
		How:   fmt.Sprintf("The kit's Ask, which is answered whatever becomes of the actor, beside the library's RequestFuture; %d questions a turn.", n),
	}
	for _, asking := range []int{1, atOnce} {
		var kit, library Series
		for range turns {
			library = append(library, perQuestion(t, n, asking, func() error {
				_, err := system.Root.RequestFuture(bare, 1, patience).Result()
				return err
			}))
			kit = append(kit, perQuestion(t, n, asking, func() error {
				_, err := supervisor.Ask[int](ctx, to, 1)
				return err
			}))
		}
		r.Ratio(fmt.Sprintf("time, of the library's, %d asking", asking), kit.Over(library), Bound{})
		r.Figure(fmt.Sprintf("Ask, %d asking", asking), kit, "µs", Bound{})
		r.Figure(fmt.Sprintf("RequestFuture, %d asking", asking), library, "µs", Bound{})
	}
	return r
}

// perQuestion is the time one of n takes, in microseconds of the clock.
func perQuestion(t testing.TB, n, asking int, ask func() error) float64 {
	t.Helper()
	began := time.Now()
	must(t, each(asking, asking, func(int) error {
		for range n / asking {
			if err := ask(); err != nil {
				return err
			}
		}
		return nil
	}))
	return float64(time.Since(began).Microseconds()) / float64(n/asking*asking)
}
