package e2e_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// TestCloseWithoutBroker closes while the broker is away: the claim cannot be given
// back, which is said; the space drains, and a later close gives it back, so that a
// successor need ask nobody.
func TestCloseWithoutBroker(t *testing.T) {
	for name, fenced := range map[string]bool{"at once": false, "after the fence": true} {
		t.Run(name, func(t *testing.T) {
			w := world.Open(t)
			awaitPlane(w)
			w.StopBroker()
			if fenced {
				w.Poll("the plane to be fenced", func() bool { return w.Space.Status().Plane.State == messages.PlaneFenced })
			}
			ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
			err := w.Space.Close(ctx)
			cancel()
			if !errors.Is(err, messages.ReleaseUnreachable) {
				t.Fatalf("close: %v", err)
			}
			if s := w.Space.Status(); s.State != messages.SpaceDraining {
				t.Errorf("the space is %s", s.State)
			}
			w.RestartBroker()
			if err := w.Space.Close(w.Context()); err != nil {
				t.Fatalf("the next close: %v", err)
			}
			if row := claimOf(w); !strings.Contains(row, `"state":"released"`) {
				t.Errorf("the claim is %s", row)
			}
		})
	}
}

// claimOf is the row that says who holds the plane.
func claimOf(w *world.World) string {
	w.Helper()
	js, err := jetstream.New(owner(w))
	if err != nil {
		w.Fatal(err)
	}
	stream, err := js.Stream(w.Context(), "KV_cotal_authority_main")
	if err != nil {
		w.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(w.Context(), "$KV.cotal_authority_main.plane")
	if err != nil {
		w.Fatal(err)
	}
	return string(m.Data)
}
