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

// TestATakeoverOfWhoHasNothing is refused for what it is: nobody has ended there.
func TestATakeoverOfWhoHasNothing(t *testing.T) {
	w := world.Open(t)
	awaitPlane(w)
	granted := w.Grant("alice", "laptop", "demo.>")
	for actor, next := range map[string]string{granted.Actor: "authplane show " + granted.Owner + "/laptop", "misspelt": "authplane show " + granted.Owner + "/misspelt"} {
		var refused struct {
			Error struct{ Reason, Next string } `json:"error"`
		}
		status := w.Call("POST", "/v1/takeover", map[string]string{"owner": granted.Owner, "actor": actor}, &refused)
		if status != http.StatusPreconditionFailed || refused.Error.Reason != "incarnation.unknown" || refused.Error.Next != next {
			t.Errorf("%s: %d %+v", actor, status, refused.Error)
		}
	}
}
