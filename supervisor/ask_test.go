package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	. "github.com/cotal-ai/authplane/supervisor"
)

type request struct{ answer any }

// answering answers a request with what it carries.
func answering() *probe {
	return &probe{receive: func(_ *Life, c actor.Context) {
		if m, ok := c.Message().(request); ok {
			c.Respond(m.answer)
		}
	}}
}

func TestAnswers(t *testing.T) {
	tree := start(t, group("root", answering().spec("a")))
	to, ctx := ref(t, tree, "a"), within(t)
	if v, err := Ask[string](ctx, to, request{"x"}); v != "x" || err != nil {
		t.Error(v, err)
	}
	if v, err := Ask[any](ctx, to, request{nil}); v != nil || err != nil {
		t.Error(v, err)
	}
	if _, err := Ask[int](ctx, to, request{"x"}); !errors.Is(err, ErrWrongAnswer) {
		t.Error(err)
	}
	if _, err := Ask[int](ctx, to, request{nil}); !errors.Is(err, ErrWrongAnswer) {
		t.Error(err)
	}
	if _, err := Ask[int](ctx, to, request{errBoom}); !errors.Is(err, errBoom) {
		t.Error(err)
	}
	if _, err := Ask[any](ctx, to, request{errBoom}); !errors.Is(err, errBoom) {
		t.Error(err)
	}
	if _, err := Ask[int](ctx, Ref{}, 1); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if err := Tell(Ref{}, 1); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	nobody, ok := tree.Ref("nobody")
	if _, err := Ask[int](ctx, nobody, 1); !errors.Is(err, ErrUnavailable) || ok {
		t.Error(err, ok)
	}
	if ref(t, tree, "a") != to || to.String() != "a" {
		t.Error("refs do not compare")
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	silent := &probe{receive: func(*Life, actor.Context) {}}
	clock := newClock()
	tree := start(t, group("root", silent.spec("a")), WithClock(clock))
	to := ref(t, tree, "a")
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := Ask[int](ctx, to, 1); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { _, err := Ask[int](ctx, to, 1); done <- err }()
	eventually(t, func() bool { return node(t, tree, "a").InFlight == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if n := node(t, tree, "a"); n.InFlight != 0 {
		t.Errorf("an abandoned question is in flight: %+v", n)
	}
	go func() { _, err := Ask[int](context.Background(), to, 1); done <- err }()
	clock.timer(t, DefaultAsk)
	clock.advance(DefaultAsk)
	if err := <-done; !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := Ask[int](ctx, to, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// An answer may come later, from another goroutine, through another actor, or twice:
// the first counts.
func TestDeferredAndForwardedAnswers(t *testing.T) {
	var kept *actor.PID
	p := &probe{}
	p.receive = func(l *Life, c actor.Context) {
		switch m := c.Message().(type) {
		case request:
			c.Respond(m.answer)
			c.Respond("second")
			l.Reply(c.Sender(), "third")
		case int: // answered by a task
			to := c.Sender()
			l.Go("answer", func(context.Context) { l.Reply(to, m); l.Reply(to, m+1) })
		case string:
			switch m {
			case "keep":
				kept = c.Sender()
			case "late":
				l.Reply(kept, "late")
				c.Respond("done")
			case "send":
				c.Send(c.Sender(), "sent")
			case "forward":
				c.Forward(l.Ref("b").PID())
			case "forward out":
				c.Forward(actor.NewPID(c.ActorSystem().Address(), "foreign"))
			case "forward nowhere":
				c.Forward(actor.NewPID(c.ActorSystem().Address(), "nowhere"))
			}
		}
	}
	b := &probe{receive: func(_ *Life, c actor.Context) {
		if m, ok := c.Message().(string); ok {
			c.Respond("b got " + m)
		}
	}}
	system := newSystem()
	must2(system.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		if m, ok := c.Message().(string); ok {
			c.Respond("foreign got " + m)
		}
	}), "foreign"))
	tree := must2(Start(within(t), system, group("root", p.spec("a"), b.spec("b"))))
	defer func() { _ = tree.Close(within(t)) }()
	to, ctx := ref(t, tree, "a"), within(t)
	for msg, want := range map[any]any{
		request{"first"}: "first", 7: 7, "send": "sent", "forward": "b got forward", "forward out": "foreign got forward out",
	} {
		if got, err := Ask[any](ctx, to, msg); got != want || err != nil {
			t.Errorf("%v: %v, %v", msg, got, err)
		}
	}
	if _, err := Ask[any](ctx, to, "forward nowhere"); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := Ask[any](short, to, "keep"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if got := must2(Ask[string](ctx, to, "late")); got != "done" {
		t.Error("a late answer went to another question:", got)
	}
	// A question that was handed on is no longer the first actor's.
	if n := node(t, tree, "a"); n.InFlight != 0 {
		t.Errorf("%+v", n)
	}
}

func TestFullMailboxRefusesAtOnceAndLosesNothing(t *testing.T) {
	entered, release := make(chan struct{}, 1), make(chan struct{})
	handled := 0
	p := &probe{receive: func(_ *Life, c actor.Context) {
		if n, ok := c.Message().(int); ok {
			if n == 0 {
				entered <- struct{}{}
				<-release
			}
			handled++
			c.Respond(handled)
		}
	}}
	s := p.spec("a")
	s.Mailbox = 4
	tree := start(t, group("root", s))
	sub := tree.Events(64)
	defer sub.Close()
	to := ref(t, tree, "a")
	if err := Tell(to, 0); err != nil {
		t.Fatal(err)
	}
	<-entered
	accepted := 0
	for range 10 {
		switch err := Tell(to, 1); {
		case err == nil:
			accepted++
		case !errors.Is(err, ErrOverloaded):
			t.Fatal(err)
		}
	}
	if accepted != 4 {
		t.Errorf("%d accepted", accepted)
	}
	if _, err := Ask[int](within(t), to, 1); !errors.Is(err, ErrOverloaded) {
		t.Error(err)
	}
	p.current().Tell(1) // what the life tells itself is never refused
	if n := node(t, tree, "a"); n.Waiting != 4 {
		t.Errorf("%+v", n)
	}
	if e := next(t, sub, at[RejectedMessage]("a")); e.Count != 1 || !errors.Is(e.Reason, ErrOverloaded) {
		t.Error(e)
	}
	close(release)
	eventually(t, func() bool { return node(t, tree, "a").Waiting == 0 })
	if got := must2(Ask[int](within(t), to, 1)); got != accepted+3 {
		t.Errorf("%d were handled, %d accepted", got, accepted)
	}
}

// The life's own messages keep their order and are not overtaken by the close.
func TestOrder(t *testing.T) {
	var got []int
	done := make(chan struct{})
	p := &probe{close: func(l *Life, _ *Close) { close(done); l.ClosedWith(nil) }}
	p.receive = func(_ *Life, c actor.Context) {
		if n, ok := c.Message().(int); ok {
			got = append(got, n)
		}
	}
	tree := start(t, group("root", p.spec("a")))
	for i := range 1000 {
		if i%2 == 0 {
			p.current().Tell(i)
		} else if err := Tell(ref(t, tree, "a"), i); err != nil {
			t.Fatal(err)
		}
	}
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	<-done
	for i, n := range got {
		if i != n {
			t.Fatalf("%d at %d", n, i)
		}
	}
	if len(got) != 1000 {
		t.Fatalf("%d arrived", len(got))
	}
}

func TestGoexitInReceiveIsADeath(t *testing.T) {
	p := &probe{receive: func(_ *Life, c actor.Context) {
		if _, ok := c.Message().(int); ok {
			(&testing.T{}).SkipNow() // runtime.Goexit
		}
	}}
	tree := start(t, group("root", p.spec("a")))
	sub := tree.Events(16)
	defer sub.Close()
	if _, err := Ask[int](within(t), ref(t, tree, "a"), 1); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	next(t, sub, func(e Opened) bool { return e.Generation == 2 })
}

func TestContinuationsAndChildActorsOfALeaf(t *testing.T) {
	p := &probe{}
	p.receive = func(l *Life, c actor.Context) {
		switch c.Message() {
		case "reenter", "reenter and panic":
			m := c.Message()
			f := actor.NewFuture(c.ActorSystem(), time.Minute)
			c.ReenterAfter(f, func(res any, err error) {
				if m != "reenter" {
					panic(errBoom)
				}
				c.Respond(res)
			})
			c.Send(f.PID(), "continued")
		case "child":
			pid := c.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				if c.Message() == "die" {
					panic(errBoom)
				}
			}))
			c.Send(pid, "die")
		}
	}
	tree := start(t, group("root", p.spec("a")))
	sub := tree.Events(16)
	defer sub.Close()
	to := ref(t, tree, "a")
	if got, err := Ask[string](within(t), to, "reenter"); got != "continued" || err != nil {
		t.Fatal(got, err)
	}
	for _, m := range []string{"reenter and panic", "child"} {
		if _, err := Ask[any](within(t), to, m); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		next(t, sub, at[Opened]("a"))
	}
}
