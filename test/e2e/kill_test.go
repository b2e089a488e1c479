package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// healsWithin is how long connects may fail after the death of an actor.
const healsWithin = 2 * time.Second

// TestKillEveryActor kills each leaf in each way that applies, while people
// connect, and expects it back, with connects working again in time.
func TestKillEveryActor(t *testing.T) {
	w := world.Open(t)
	alice := w.Person("alice", "laptop", "demo.>")
	for _, a := range w.Leaves() {
		for _, how := range []string{"panic", "stop", "disconnect"} {
			t.Run(a.Path+"/"+how, func(t *testing.T) {
				var killed struct {
					Path       string `json:"path"`
					Generation uint64 `json:"generation"`
				}
				url := w.Space.URL()
				if !hasConnection(a.Path) && how == "disconnect" {
					if status := w.Call("POST", "/v1/debug/kill", map[string]string{"actor": a.Path, "how": how}, nil); status != http.StatusConflict {
						t.Errorf("%s has no connection to lose: %d", a.Path, status)
					}
					return
				}
				if status := w.Call("POST", "/v1/debug/kill", map[string]string{"actor": a.Path, "how": how}, &killed); status != http.StatusAccepted {
					t.Fatalf("kill: %d", status)
				}
				began := time.Now()
				w.AwaitLife(a.Path, killed.Generation+1)
				if nc, err := alice.DialBy(began.Add(healsWithin)); err != nil {
					t.Errorf("connects fail %s after the death: %v", time.Since(began), err)
				} else {
					nc.Close()
				}
				w.AwaitState(messages.SpaceReady)
				if w.Space.URL() != url {
					t.Errorf("the face moved from %s to %s", url, w.Space.URL())
				}
				if status := w.Call("GET", "/v1/status", nil, nil); status != http.StatusOK {
					t.Errorf("status: %d", status)
				}
			})
		}
	}
}

// hasConnection reports whether an actor holds a connection while it is idle.
func hasConnection(path string) bool {
	switch path {
	case "plane/registrar", "plane/claim", "plane/retirement/sweeper", "plane/retirement/desk", "exchange", "provisioning":
		return false
	}
	return true
}
