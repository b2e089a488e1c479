package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/supervisor"
	"github.com/cotal-ai/authplane/test/world"
)

// openOrder is the order in which the leaves of a space open.
var openOrder = []string{
	"plane/writer", "plane/registrar", "plane/reader", "plane/issuer", "plane/barrier", "plane/observer", "plane/evictor",
	"plane/ledger-scanner", "plane/records-scanner", "plane/claim", "plane/retirement/sweeper", "plane/retirement/desk", "plane/admin",
	"callout/1", "callout/2", "presence", "exchange", "provisioning",
}

// script records who was asked to open, to drain and to close, and makes some of them panic
// at it.
type script struct {
	panics map[string]bool // "open plane/reader"

	mu   sync.Mutex
	told []string
}

func (s *script) around(path string) []actor.ReceiverMiddleware {
	return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, e *actor.MessageEnvelope) {
			switch e.Message.(type) {
			case *supervisor.Open:
				s.note("open " + path)
			case *supervisor.Close:
				s.note("close " + path)
			case *supervisor.Drain:
				s.note("drain " + path)
			}
			next(ctx, e)
		}
	}}
}

func (s *script) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, what)
	if s.panics[what] {
		panic("by the script: " + what)
	}
}

// TestOpenFailsAtEachChild has each child in turn fail to open: what was open is
// closed in the exact reverse order, the error names the child, and no connection
// is left.
func TestOpenFailsAtEachChild(t *testing.T) {
	for i, failing := range openOrder {
		t.Run(strings.ReplaceAll(failing, "/", "-"), func(t *testing.T) {
			s, seen := &script{panics: map[string]bool{"open " + failing: true}}, &custody{}
			w := world.New(t, seen.watch, func(c *space.Config) { c.Middleware = s.around })
			err := startFails(t, w)
			if !strings.Contains(err.Error(), failing) || !strings.Contains(err.Error(), "by the script: open "+failing) {
				t.Errorf("the error does not say what failed and why: %v", err)
			}
			var want []string
			for _, opened := range openOrder[:i+1] {
				want = append(want, "open "+opened)
			}
			for _, opened := range slices.Backward(openOrder[:i]) {
				want = append(want, "close "+opened)
			}
			if !slices.Equal(s.told, want) {
				t.Errorf("got %v, want %v", s.told, want)
			}
			seen.unwound(t)
			w.NoConnections()
		})
	}
}

// TestUnwindFails has an unwinding step fail also: it hides neither the cause nor
// the other steps.
func TestUnwindFails(t *testing.T) {
	last := openOrder[len(openOrder)-1]
	s := &script{panics: map[string]bool{"open " + last: true, "close callout/1": true, "close plane/reader": true}}
	w := world.New(t, func(c *space.Config) { c.Middleware = s.around })
	err := startFails(t, w)
	for what := range s.panics {
		if !strings.Contains(err.Error(), what) {
			t.Errorf("the error says nothing of %q: %v", what, err)
		}
	}
	for _, path := range openOrder[:len(openOrder)-1] {
		if !slices.Contains(s.told, "close "+path) {
			t.Errorf("%s was not closed", path)
		}
	}
	w.NoConnections()
}

func startFails(t *testing.T, w *world.World) error {
	t.Helper()
	h, err := space.Start(w.Context(), w.System, w.Config)
	if err == nil {
		_ = h.Close(w.Context())
		t.Fatal("the space opened")
	}
	return fmt.Errorf("as reported: %w", err)
}
