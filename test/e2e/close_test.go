package e2e_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
	"github.com/cotal-ai/authplane/test/world"
)

// TestCloseOrder watches the close from outside: admission first, then the plane,
// the responders last.
func TestCloseOrder(t *testing.T) {
	s := &script{}
	w := world.New(t, func(c *space.Config) { c.Intercept = s.around })
	w.Start()
	w.Close()
	closes := s.told[len(openOrder):]
	for i, stage := range [][]string{
		{"exchange"},
		{"plane/reader", "plane/ledger-scanner", "plane/records-scanner"},
		{"plane/claim"},
		{"plane/barrier", "plane/issuer", "plane/writer", "plane/observer", "plane/evictor", "plane/registrar"},
		{"callout/1", "callout/2", "presence"},
	} {
		var got []string
		for _, told := range closes[:min(len(stage), len(closes))] {
			got = append(got, strings.TrimPrefix(told, "close "))
		}
		closes = closes[len(got):]
		slices.Sort(got)
		slices.Sort(stage)
		if !slices.Equal(got, stage) {
			t.Errorf("stage %d: got %v, want %v", i+1, got, stage)
		}
	}
	if state := w.Space.Status().State; state != messages.SpaceClosed {
		t.Errorf("a closed space is %s", state)
	}
}

// TestCloseWithOneThatCannot has one client not close: the error names it, nothing
// counts as closed, and a retry after the repair ends everything.
func TestCloseWithOneThatCannot(t *testing.T) {
	for _, path := range openOrder {
		t.Run(strings.ReplaceAll(path, "/", "-"), func(t *testing.T) {
			var deaf atomic.Bool
			deaf.Store(true)
			w := world.New(t, func(c *space.Config) {
				c.Intercept = func(at string, next func(actor.Context)) func(actor.Context) {
					return func(ctx actor.Context) {
						if _, closing := ctx.Message().(*supervisor.Close); closing && at == path && deaf.Load() {
							return
						}
						next(ctx)
					}
				}
			})
			w.Start()
			label := w.Actor(path).Label
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err := w.Space.Close(ctx)
			if !errors.Is(err, supervisor.ErrStillRunning) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), label) {
				t.Errorf("the error does not name %s (%s): %v", path, label, err)
			}
			select {
			case <-w.Space.Closed():
				t.Error("it counts as closed")
			default:
			}
			if state := w.Space.Status().State; state != messages.SpaceDraining {
				t.Errorf("state %s", state)
			}
			deaf.Store(false) // the world closes it at the end, and insists
		})
	}
}

// TestBrokerRestart stops the broker under an open space and starts it again: the
// space says so meanwhile, nothing is restarted from outside, and clients of
// default configuration are back too.
func TestBrokerRestart(t *testing.T) {
	w := world.Open(t)
	alice := w.Person("alice", "laptop", "demo.>")
	old := alice.Connect()
	w.StopBroker()
	w.AwaitState(messages.SpaceUnavailable)
	w.Await("the cause to name the plane", func() bool { return strings.Contains(w.Space.Status().Cause, "plane/") })
	w.RestartBroker()
	began := time.Now()
	w.AwaitState(messages.SpaceReady)
	if nc, err := alice.DialBy(began.Add(healsWithin)); err != nil {
		t.Errorf("connects fail %s after the broker's return: %v", time.Since(began), err)
	} else {
		nc.Close()
	}
	if err := old.FlushTimeout(world.Patience); err != nil {
		t.Errorf("the old client is not back: %v", err)
	}
	if err := w.Space.Err(); err != nil {
		t.Errorf("the space failed: %v", err)
	}
}
