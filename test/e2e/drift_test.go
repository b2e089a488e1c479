package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// owner connects as somebody who owns CTRL, which nobody but an intruder or a
// careless operator with the offline seeds can.
func owner(w *world.World) *nats.Conn {
	w.Helper()
	return w.Owner("ctrl")
}

// TestDriftedStream has the stream's shape changed under a running space: within
// the time of one proof nothing is acknowledged any more, the status says why, and
// when the shape is restored the space serves again by itself.
func TestDriftedStream(t *testing.T) {
	w := world.Open(t)
	alice := w.Person("alice", "laptop", "demo.>")
	js, err := jetstream.New(owner(w))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := js.Stream(w.Context(), "KV_cotal_authority_main")
	if err != nil {
		t.Fatal(err)
	}
	shape := ours.CachedInfo().Config
	drifted := shape
	drifted.MaxAge = time.Hour
	if _, err := js.UpdateStream(w.Context(), drifted); err != nil {
		t.Fatal(err)
	}
	w.AwaitState(messages.SpaceUnavailable)
	w.Poll("the writer to refuse as well", func() bool {
		return w.Call("DELETE", alice.Path(), nil, nil) == http.StatusServiceUnavailable
	})
	if status := w.Call("GET", "/v1/grants", nil, nil); status != http.StatusServiceUnavailable {
		t.Errorf("grants are listed: %d", status)
	}
	w.Poll("the cause", func() bool { return strings.Contains(w.Space.Status().Cause, "changed shape") })
	if _, err := js.UpdateStream(w.Context(), shape); err != nil {
		t.Fatal(err)
	}
	w.AwaitState(messages.SpaceReady)
}
