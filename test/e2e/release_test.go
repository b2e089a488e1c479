package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// TestReleaseFindsASuccessor has somebody else's claim stand where the close would give
// its own back: that is told, by this close alone, while everything closes; and what
// stands there is left alone.
func TestReleaseFindsASuccessor(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	var overtaken sync.Once
	w.Config.Middleware = atClose("plane/claim", func() { overtaken.Do(func() { overtake(w) }) })
	w.Start()
	awaitPlane(w)
	err := w.Space.Close(w.Context())
	if !errors.Is(err, messages.ClaimLost) || !strings.Contains(err.Error(), "plane/claim") {
		t.Errorf("the close says %v", err)
	}
	select {
	case <-w.Space.Closed():
	case <-time.After(world.Patience):
		t.Fatal("something is left")
	}
	if s := w.Space.Status(); s.State != messages.SpaceClosed || s.Plane.State != messages.PlaneClosed || s.Plane.HeldByUs {
		t.Errorf("the status is %+v", s)
	}
	if err := w.Space.Close(w.Context()); err != nil {
		t.Errorf("told again: %v", err)
	}
	if row := claimOf(w); !strings.Contains(row, `"state":"held"`) || !strings.Contains(row, `"claimId":"aaaaaaaaaaaaaaaaaaaaaaaaaa"`) {
		t.Errorf("the successor's claim is %s", row)
	}
	for _, c := range w.Space.Connections() {
		if !c.Ended {
			t.Errorf("%s has not ended", c.Label)
		}
	}
}

// TestWhatHasClosedIsNotClosedAgain has the claim not answer to its close: what closed
// before it, the scanners among them, is left alone by the close that finishes.
func TestWhatHasClosedIsNotClosedAgain(t *testing.T) {
	t.Parallel()
	s, inject := &script{}, &faults.Injector{}
	w := world.New(t, func(c *space.Config) {
		c.Middleware = func(path string) []actor.ReceiverMiddleware {
			return append(s.around(path), inject.Middleware(path)...)
		}
	})
	w.Start()
	awaitPlane(w)
	armed := inject.Arm(faults.Fault{Actor: "plane/claim", Harm: faults.Drop, Message: &supervisor.Close{}})
	defer armed.Disarm()
	ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
	defer cancel()
	if err := w.Space.Close(ctx); !errors.Is(err, supervisor.ErrStillRunning) || !strings.Contains(err.Error(), "plane/claim") {
		t.Fatalf("the close says %v", err)
	}
	for _, a := range w.Space.Tree() {
		closed, waits := a.State == "closed", a.Path == "plane/barrier" || a.Path == "plane/issuer" || a.Path == "plane/writer"
		if strings.HasSuffix(a.Path, "-scanner") && !closed || waits && closed {
			t.Errorf("%s is %s", a.Path, a.State)
		}
	}
	w.Close()
	asked := map[string]int{}
	for _, told := range s.told {
		if path, is := strings.CutPrefix(told, "close "); is {
			asked[path]++
		}
	}
	for _, path := range openOrder {
		want := 1
		if path == "plane/claim" {
			want = 2
		}
		if asked[path] != want {
			t.Errorf("%s was asked to close %d times", path, asked[path])
		}
	}
	if row := claimOf(w); !strings.Contains(row, `"state":"released"`) {
		t.Errorf("the claim is %s", row)
	}
}

// atClose has something happen before an actor is asked to close.
func atClose(at string, do func()) func(string) []actor.ReceiverMiddleware {
	return func(path string) []actor.ReceiverMiddleware {
		return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
				if _, closing := e.Message.(*supervisor.Close); closing && path == at {
					do()
				}
				next(c, e)
			}
		}}
	}
}

// overtake writes the claim of another process over the one that stands.
func overtake(w *world.World) {
	var row map[string]any
	err := json.Unmarshal([]byte(claimOf(w)), &row)
	generation, _ := row["generation"].(float64)
	row["generation"], row["claimId"] = generation+1, "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	value, failed := json.Marshal(row)
	js, none := jetstream.New(owner(w))
	if err = errors.Join(err, failed, none); err == nil {
		_, err = js.Publish(w.Context(), "$KV.cotal_authority_main.plane", value)
	}
	if err != nil {
		w.Errorf("overtake: %v", err)
	}
}
