package client

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// idler is a leaf that does nothing.
type idler struct{ life *supervisor.Life }

func (i *idler) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *supervisor.Open:
		i.life.Opened()
	case *supervisor.Close:
		i.life.ClosedWith(nil)
	}
}

// handsOf are the hands of a leaf's life, which ends with end.
func handsOf(t *testing.T) (h *hands, end func()) {
	t.Helper()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	lives := make(chan *supervisor.Life, 1) // there is one
	tree, err := supervisor.Start(t.Context(), system, supervisor.Spec{Name: "root", Group: &supervisor.Group{Children: []supervisor.Spec{
		{Name: "leaf", New: func(life *supervisor.Life) actor.Actor { lives <- life; return &idler{life} }},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		if err := tree.Close(context.Background()); err != nil {
			t.Error(err)
		}
		system.Shutdown()
	})
	t.Cleanup(end)
	return newHands(<-lives), end
}

// settled polls: a hand that leaves tells nobody.
func settled(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(what)
		}
	}
}

func TestThereAreNoMoreHandsThanMayBe(t *testing.T) {
	h, _ := handsOf(t)
	gate := make(chan struct{})
	var done sync.WaitGroup
	for i := range maxHands {
		done.Add(1)
		if !h.give(func(context.Context) { defer done.Done(); <-gate }) {
			t.Fatalf("the %d. is refused", i+1)
		}
	}
	if h.give(func(context.Context) { t.Error("it is worked on") }) {
		t.Error("one too many is taken")
	}
	close(gate)
	done.Wait()
	settled(t, "the crowd stays", func() bool { return h.all.Load() == idleHands && h.idle.Load() == idleHands })
}

func TestHandsAreUsedAgain(t *testing.T) {
	h, _ := handsOf(t)
	for range 100 {
		done := make(chan struct{})
		if !h.give(func(context.Context) { close(done) }) {
			t.Fatal("refused")
		}
		<-done
		settled(t, "the hand does not come back", func() bool { return h.idle.Load() == h.all.Load() })
	}
	if n := h.all.Load(); n > 2 { // it counts itself idle a moment before it takes
		t.Errorf("%d hands for one thing at a time", n)
	}
}

func TestHandsEndWithTheLife(t *testing.T) {
	h, end := handsOf(t)
	working := make(chan struct{})
	h.give(func(ctx context.Context) { close(working); <-ctx.Done() })
	<-working
	end()
	if n := h.all.Load(); n != 0 {
		t.Errorf("%d are left", n)
	}
}
