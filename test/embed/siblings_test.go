package embed_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// siblings are two spaces of the same name in one system, each with a trust chain
// and a broker of its own. The change is made to the first.
func siblings(t *testing.T, change ...func(*space.Config)) (first, second *world.World) {
	t.Helper()
	second = world.Open(t)
	first = world.New(t, change...)
	first.System = second.System
	first.Start()
	return first, second
}

// TestOneCloses closes one of two spaces.
func TestOneCloses(t *testing.T) {
	first, second := siblings(t)
	watched := untouched(second)
	firstEnds := watch(first)
	first.Close()
	within(t, firstEnds, "the end of the one that closed")
	watched(t)
}

// TestOneLosesItsBroker stops the broker of one space and starts it again.
func TestOneLosesItsBroker(t *testing.T) {
	first, second := siblings(t)
	watched := untouched(second)
	first.StopBroker()
	first.AwaitState(messages.SpaceUnavailable)
	if state := ask(first); state != messages.SpaceUnavailable {
		t.Errorf("a space without a broker answers that it is %q", state)
	}
	watched(t)
	first.RestartBroker()
	first.AwaitState(messages.SpaceReady)
	watched(t)
}

// TestOneFails has an actor of one space never open again once it has died, until
// the space gives up.
func TestOneFails(t *testing.T) {
	inject := &faults.Injector{}
	first, second := siblings(t, inject.Into)
	inject.Arm(faults.Fault{Actor: "plane/writer", Harm: faults.Throw, Message: &supervisor.Open{}, Always: true})
	watched := untouched(second)
	first.Call("POST", "/v1/debug/kill", map[string]string{"actor": "plane/writer", "how": "panic"}, nil)
	within(t, first.Space.Failed(), "the failure of the first")
	if first.Space.Err() == nil || ask(first) != messages.SpaceUnavailable {
		t.Errorf("a failed space: %v, and it answers that it is %q", first.Space.Err(), ask(first))
	}
	watched(t)
	first.Close()
	watched(t)
}

// untouched remembers how a space is, and returns a check that this is all it went
// through, and that people still connect.
func untouched(w *world.World) func(*testing.T) {
	w.Helper()
	before, since, ends := w.Space.Tree(), w.Space.Status().Since, watch(w)
	alice := w.Person("alice", "laptop", "demo.>")
	standing := alice.Connect()
	return func(t *testing.T) {
		t.Helper()
		if state := ask(w); state != messages.SpaceReady || w.Space.Err() != nil {
			t.Errorf("the sibling is %q, %v", state, w.Space.Err())
		}
		for i, a := range w.Space.Tree() {
			if a != before[i] {
				t.Errorf("the sibling's actor was %+v and is %+v", before[i], a)
			}
		}
		if now := w.Space.Status().Since; !now.Equal(since) {
			t.Errorf("the sibling has been so since %s, not %s", now, since)
		}
		if err := standing.FlushTimeout(world.Patience); err != nil || standing.Statistics.Reconnects != 0 {
			t.Errorf("the sibling's client: %v, reconnected %d times", err, standing.Statistics.Reconnects)
		}
		alice.Connect()
		select {
		case <-ends:
			t.Error("the sibling is said to have ended")
		default:
		}
	}
}

// ask asks a space how it is, as another actor would; empty when nobody answers.
func ask(w *world.World) messages.SpaceState {
	w.Helper()
	answer, err := w.System.Root.RequestFuture(w.Space.PID(), messages.GetStatus{}, time.Second).Result()
	if err != nil {
		return ""
	}
	return answer.(messages.Status).State
}

// watch has an actor of the system watch a space until it ends; what it returns is
// closed when the actor is told so.
func watch(w *world.World) <-chan struct{} {
	w.Helper()
	watching, ended := make(chan struct{}), make(chan struct{})
	pid := w.Space.PID()
	w.System.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(pid)
			close(watching)
		case *actor.Terminated:
			if m.Who.Equal(pid) {
				close(ended)
				ctx.Stop(ctx.Self())
			}
		}
	}))
	<-watching
	return ended
}

func within(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
	}
}
