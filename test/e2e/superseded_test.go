package e2e_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/cotal-ai/authplane/test/world"
)

// TestASupersededTakeoverLeavesNoProblem retires people while their takeovers run: when
// they have retired, nobody is told to look after a takeover that is over.
func TestASupersededTakeoverLeavesNoProblem(t *testing.T) {
	w := world.Open(t)
	awaitPlane(w)
	for i := range 8 {
		p := w.Person(fmt.Sprintf("p%d", i), "laptop", "demo.>")
		p.Connect() // so that the takeover takes a while
		about := map[string]string{"owner": p.Grant.Owner, "actor": p.Grant.Actor}
		if status := w.Call("POST", "/v1/takeover?wait=0", about, nil); status != http.StatusServiceUnavailable {
			t.Fatalf("takeover: %d", status)
		}
		if got := retire(w, p); got.Outcome != "retired" {
			t.Fatalf("the proof is %+v", got)
		}
	}
	w.Poll("a status without problems", func() bool {
		var status struct{ Problems []string }
		if code := w.Call("GET", "/v1/status", nil, &status); code != http.StatusOK {
			t.Fatalf("status: %d", code)
		}
		return len(status.Problems) == 0
	})
}
