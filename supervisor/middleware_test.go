package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	. "github.com/cotal-ai/authplane/supervisor"
)

// through has f see every message before its leaf does.
func through(f func(path string, e *actor.MessageEnvelope, next func())) Option {
	return WithMiddleware(func(path string) []actor.ReceiverMiddleware {
		return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) { f(path, e, func() { next(c, e) }) }
		}}
	})
}

// name is the type of a message as a test writes it.
func name(message any) string { return fmt.Sprintf("%T", message) }

// TestMiddlewareSeesEverything has two pieces of middleware note what they see, and
// when they are made.
func TestMiddlewareSeesEverything(t *testing.T) {
	j := &journal{}
	noting := func(who, path string) actor.ReceiverMiddleware {
		j.add("%s made for %s", who, path)
		return func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
				j.add("%s %s %t", who, name(e.Message), e.Message == c.Message())
				next(c, e)
			}
		}
	}
	tree := start(t, group("root", plain("a", nil), plain("b", nil)), WithMiddleware(func(path string) []actor.ReceiverMiddleware {
		if path == "b" {
			return nil
		}
		return []actor.ReceiverMiddleware{noting("outer", path), noting("inner", path)}
	}))
	for _, path := range []string{"a", "b"} {
		if n, err := Ask[int](within(t), ref(t, tree, path), 7); n != 7 || err != nil {
			t.Fatal(path, n, err)
		}
	}
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	want := []string{"outer made for a", "inner made for a"}
	for _, m := range []string{"*actor.Started", "*supervisor.Open", "int", "*supervisor.Close", "*actor.Stopping", "*actor.Stopped"} {
		want = append(want, "outer "+m+" true", "inner "+m+" true")
	}
	j.want(t, want...)
}

// TestMiddlewareChanges has what a leaf gets be what its middleware handed on, also
// in a continuation; the answer goes to who asked all the same.
func TestMiddlewareChanges(t *testing.T) {
	p := &probe{receive: func(_ *Life, c actor.Context) {
		header := func() string { return fmt.Sprint(c.Message(), c.MessageHeader().Get("trace")) }
		if c.Message() != "later" {
			c.Respond(header())
			return
		}
		f := actor.NewFuture(c.ActorSystem(), time.Minute)
		c.ReenterAfter(f, func(any, error) { c.Respond(header()) })
		c.Send(f.PID(), "now")
	}}
	tree := start(t, group("root", p.spec("a")), WithMiddleware(func(string) []actor.ReceiverMiddleware {
		return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
				switch e.Message {
				case 1:
					e.Message, e.Sender = "one", nil
				case 2:
					e.Message = "later"
				case 3: // past what comes next
					c.Receive(&actor.MessageEnvelope{Message: "three"})
					return
				}
				e.SetHeader("trace", " 17")
				next(c, e)
			}
		}}
	}))
	for i, want := range []string{"one 17", "later 17", "three"} {
		if got, err := Ask[string](within(t), ref(t, tree, "a"), i+1); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// TestMiddlewarePanics has a panic at any message be the death of the leaf.
func TestMiddlewarePanics(t *testing.T) {
	for _, at := range []string{"*actor.Started", "*supervisor.Open"} {
		t.Run(at, func(t *testing.T) {
			j := &journal{}
			_, err := open(t, group("root", plain("first", j), plain("a", nil)), through(func(path string, e *actor.MessageEnvelope, next func()) {
				if path == "a" && name(e.Message) == at {
					panic(errBoom)
				}
				next()
			}))
			if f := Leaves(err); len(f) != 1 || f[0].Path != "a" || f[0].Phase != PhaseOpen || !errors.Is(err, errBoom) {
				t.Errorf("got %v", err)
			}
			j.want(t, "open first", "close first")
		})
	}
	for at, phase := range map[string]Phase{"*supervisor.Drain": PhaseDrain, "*supervisor.Close": PhaseClose} {
		t.Run(at, func(t *testing.T) {
			j := &journal{}
			root := group("root", plain("first", j), plain("a", nil))
			root.Group.Stages = []Stage{{Drain: []string{"a"}, Close: []string{"a"}}, {Close: []string{"first"}}}
			tree := start(t, root, through(func(path string, e *actor.MessageEnvelope, next func()) {
				if path == "a" && name(e.Message) == at {
					panic(errBoom)
				}
				next()
			}))
			err := tree.Close(within(t))
			if f := Leaves(err); len(f) != 1 || f[0].Path != "a" || f[0].Phase != phase || !errors.Is(err, errBoom) {
				t.Errorf("got %v", err)
			}
			wait(t, tree.Closed(), "the end")
			j.want(t, "open first", "close first")
		})
	}
	t.Run("*actor.Stopping", func(t *testing.T) { // of a life that is over: nothing comes of it
		tree := start(t, group("root", plain("a", nil)), through(func(_ string, e *actor.MessageEnvelope, next func()) {
			if name(e.Message) == "*actor.Stopping" {
				panic(errBoom)
			}
			next()
		}))
		if err := tree.Close(within(t)); err != nil {
			t.Error(err)
		}
		wait(t, tree.Closed(), "the end")
	})
	t.Run("a request", func(t *testing.T) {
		tree := start(t, group("root", plain("a", nil)), through(func(_ string, e *actor.MessageEnvelope, next func()) {
			if e.Message == 3 {
				panic(errBoom)
			}
			next()
		}))
		sub := tree.Events(16)
		defer sub.Close()
		for i := range 3 {
			if n, err := Ask[int](within(t), ref(t, tree, "a"), i); n != i || err != nil {
				t.Fatal(n, err)
			}
		}
		if _, err := Ask[int](within(t), ref(t, tree, "a"), 3); !errors.Is(err, ErrUnavailable) || !errors.Is(err, ErrUnanswered) {
			t.Fatal(err)
		}
		if e := next(t, sub, at[Died]("a")); !errors.Is(e.Cause, errBoom) {
			t.Error(e)
		}
		next(t, sub, func(e Opened) bool { return e.Generation == 2 })
		if n, err := Ask[int](within(t), ref(t, tree, "a"), 4); n != 4 || err != nil {
			t.Fatal(n, err)
		}
	})
}

// automatic is answered by the kit once the leaf has had it.
type automatic struct{}

func (automatic) GetAutoResponse(actor.Context) any { return "by itself" }

// TestMiddlewareDrops has messages never reach their leaf: nothing waits longer
// for that than its deadline, and the leaf lives on.
func TestMiddlewareDrops(t *testing.T) {
	t.Run("a request", func(t *testing.T) {
		tree := start(t, group("root", plain("a", nil)), through(func(_ string, e *actor.MessageEnvelope, next func()) {
			if e.Message != 1 && e.Message != (automatic{}) {
				next()
			}
		}))
		for _, message := range []any{1, automatic{}} {
			short, cancel := context.WithTimeout(within(t), 10*time.Millisecond)
			defer cancel()
			if _, err := Ask[any](short, ref(t, tree, "a"), message); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%T: %v", message, err)
			}
		}
		if n, err := Ask[uint64](within(t), ref(t, tree, "a"), "who"); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
	t.Run("an open", func(t *testing.T) {
		late := plain("a", nil)
		late.OpenWithin = 10 * time.Millisecond
		_, err := open(t, group("root", late), through(func(_ string, e *actor.MessageEnvelope, next func()) {
			if _, opens := e.Message.(*Open); !opens {
				next()
			}
		}))
		if f := Leaves(err); len(f) != 1 || f[0].Path != "a" || f[0].Phase != PhaseOpen || !errors.Is(err, ErrLate) {
			t.Errorf("got %v", err)
		}
	})
	for what, lost := range map[string]string{"drain": "*supervisor.Drain", "close": "*supervisor.Close"} {
		t.Run(lost, func(t *testing.T) {
			slow := plain("a", nil)
			slow.CloseWithin = 10 * time.Millisecond
			root := group("root", slow)
			root.Group.Stages = []Stage{{Drain: []string{"a"}}, {Close: []string{"a"}}}
			var once sync.Once
			tree := start(t, root, through(func(_ string, e *actor.MessageEnvelope, next func()) {
				drop := false
				if name(e.Message) == lost {
					once.Do(func() { drop = true })
				}
				if !drop {
					next()
				}
			}))
			sub := tree.Events(16)
			defer sub.Close()
			err := tree.Close(within(t))
			if f := Leaves(err); len(f) != 1 || f[0].Path != "a" || !errors.Is(err, ErrStillRunning) {
				t.Errorf("got %v", err)
			}
			if e := next(t, sub, at[StillRunning]("a")); !slices.Equal(e.What, []string{what}) {
				t.Error(e)
			}
			eventually(t, func() bool { return tree.Close(within(t)) == nil }) // once may not be in time
			wait(t, tree.Closed(), "the end")
		})
	}
}

// TestMiddlewareDelays has an open held until the time for it is over, and then some:
// it is reported as still running until it is let go.
func TestMiddlewareDelays(t *testing.T) {
	held := make(chan struct{})
	slow := plain("a", nil)
	slow.OpenWithin, slow.CloseWithin = 10*time.Millisecond, 10*time.Millisecond
	j := &journal{}
	root := group("root", plain("first", j), slow)
	root.CloseWithin = 100 * time.Millisecond // how long what does not end is waited for
	_, err := open(t, root, through(func(path string, e *actor.MessageEnvelope, next func()) {
		if _, opens := e.Message.(*Open); opens && path == "a" {
			<-held
		}
		next()
	}))
	if !errors.Is(err, ErrLate) || !errors.Is(err, ErrStillRunning) {
		t.Errorf("got %v", err)
	}
	j.want(t, "open first", "close first")
	close(held)
}
