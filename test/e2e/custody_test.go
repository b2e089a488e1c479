package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/test/world"
)

// custody is what a space logs of its connections, from the first to the last, also
// where it never opens.
type custody struct {
	mu  sync.Mutex
	log bytes.Buffer
}

func (c *custody) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Write(b)
}

func (c *custody) watch(config *space.Config) {
	config.Logger = slog.New(slog.NewJSONHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// read lists whose connections were held and whose ended, in that order.
func (c *custody) read(t *testing.T) (held, ended []string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range bytes.Lines(c.log.Bytes()) {
		var said struct{ Msg, Actor, Label string }
		if err := json.Unmarshal(line, &said); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch said.Msg {
		case "resource held":
			held = append(held, said.Actor)
		case "resource ended":
			ended = append(ended, said.Actor)
		default:
			continue
		}
		if said.Label == "" {
			t.Errorf("no label: %s", line)
		}
	}
	return held, ended
}

// unwound insists that connections were opened in the declared order and ended in the
// exact reverse, but for that of the registrar, which ends at once.
func (c *custody) unwound(t *testing.T) (held []string) {
	t.Helper()
	held, ended := c.read(t)
	if !slices.IsSortedFunc(held, byOpenOrder) {
		t.Errorf("opened %v", held)
	}
	registrar := func(path string) bool { return path == "plane/registrar" }
	opened, closed := slices.DeleteFunc(slices.Clone(held), registrar), slices.DeleteFunc(ended, registrar)
	slices.Reverse(closed)
	if !slices.Equal(opened, closed) {
		t.Errorf("opened %v, and ended, in reverse, %v", opened, closed)
	}
	return held
}

func byOpenOrder(a, b string) int { return slices.Index(openOrder, a) - slices.Index(openOrder, b) }

// TestOpenFailsWithAConnectionInHand has each child in turn die when it has its
// connection and is not open yet: that one ends first, and the others behind it.
func TestOpenFailsWithAConnectionInHand(t *testing.T) {
	for _, failing := range openOrder {
		t.Run(strings.ReplaceAll(failing, "/", "-"), func(t *testing.T) {
			seen := &custody{}
			var met bool
			w := world.New(t, seen.watch, func(c *space.Config) { c.Middleware = diesConnected(failing, &met) })
			h, err := space.Start(w.Context(), w.System, w.Config)
			if err == nil {
				if err := h.Close(w.Context()); err != nil || met {
					t.Fatal("it opened", err)
				}
				if hasConnection(failing) {
					t.Error("it opened, and had no connection")
				}
				return
			}
			if !strings.Contains(err.Error(), failing) || !strings.Contains(err.Error(), "in hand") {
				t.Errorf("got %v", err)
			}
			if held := seen.unwound(t); len(held) == 0 || held[len(held)-1] != failing {
				t.Errorf("opened %v", held)
			}
			w.NoConnections()
		})
	}
}

// diesConnected has an actor panic when it is told that its connection stands.
func diesConnected(path string, met *bool) func(string) []actor.ReceiverMiddleware {
	return func(at string) []actor.ReceiverMiddleware {
		if at != path {
			return nil
		}
		return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
				switch fmt.Sprintf("%T", e.Message) {
				case "client.connected", "scanner.opened":
					*met = true
					panic("with a connection in hand")
				}
				next(c, e)
			}
		}}
	}
}
