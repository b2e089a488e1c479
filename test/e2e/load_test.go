package e2e_test

import (
	"context"
	"testing"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// TestKillsUnderLoad kills every leaf in every way under a load: no acknowledged
// write is lost, nobody is admitted wrongly, and connects go on in time.
func TestKillsUnderLoad(t *testing.T) {
	w := world.Open(t)
	leaves := w.Leaves() // and not what the load begins, which ends by itself
	ctx, stop := context.WithCancel(context.Background())
	l := world.StartLoad(ctx, w)
	for _, how := range []string{"panic", "stop", "disconnect"} {
		for _, a := range leaves {
			if how == "disconnect" && !hasConnection(a.Path) {
				continue
			}
			w.AwaitLife(a.Path, a.Generation) // a fence may have it down
			path, generation, err := w.Space.Kill(ctx, a.Path, how)
			if err != nil {
				t.Errorf("%s of %s: %v", how, a.Path, err)
				continue
			}
			if !l.AwaitConnect(healsWithin) {
				t.Errorf("no connect within %s of the %s of %s", healsWithin, how, a.Path)
			}
			w.AwaitLife(path, generation+1)
		}
	}
	w.AwaitState(messages.SpaceReady)
	stop()
	l.Wait()
	l.Check(t)
}

// TestBrokerKilledUnderLoad kills the broker and starts it again under a load.
func TestBrokerKilledUnderLoad(t *testing.T) {
	w := world.Open(t)
	ctx, stop := context.WithCancel(context.Background())
	l := world.StartLoad(ctx, w)
	for range 3 {
		if !l.AwaitConnect(world.Patience) {
			t.Fatal("no connect before")
		}
		w.StopBroker()
		w.AwaitState(messages.SpaceUnavailable)
		w.RestartBroker()
		w.AwaitState(messages.SpaceReady)
		if !l.AwaitConnect(healsWithin) {
			t.Errorf("no connect within %s of the broker's return", healsWithin)
		}
	}
	stop()
	l.Wait()
	l.Check(t)
}
