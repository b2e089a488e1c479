package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// TestPoisonedOperation garbles the record of a retirement under way: it stops nobody
// else, is shown with what to do about it, and ends once it can be read again.
func TestPoisonedOperation(t *testing.T) {
	inject := &faults.Injector{}
	w := world.Open(t, inject.Into)
	awaitPlane(w)
	alice, bob := w.Person("alice", "laptop", "demo.>"), w.Person("bob", "laptop", "demo.>")
	held := inject.Arm(faults.Fault{Actor: "plane/retirement/sweeper", Harm: faults.Hold})
	defer held.Disarm()
	ask := map[string]string{"owner": alice.Grant.Owner, "actor": alice.Grant.Actor, "uid": alice.Grant.UID}
	var answer struct {
		Error struct {
			OpID string `json:"op_id"`
		}
	}
	status := w.Call("POST", "/v1/retire?wait=0", ask, &answer)
	pending := answer.Error
	if status != http.StatusServiceUnavailable || pending.OpID == "" {
		t.Fatalf("retire: %d %+v", status, answer)
	}
	within(t, held.Struck(), "the eviction")
	js, err := jetstream.New(owner(w))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(w.Context(), "KV_cotal_authority_main")
	if err != nil {
		t.Fatal(err)
	}
	row := "$KV.cotal_authority_main.op." + pending.OpID
	before, err := stream.GetLastMsgForSubject(w.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	put := func(value []byte) {
		if _, err := js.Publish(w.Context(), row, value); err != nil {
			t.Fatal(err)
		}
	}
	put([]byte("junk"))
	held.Disarm()
	w.Poll("the operation to be shown as poisoned", func() bool {
		problems := strings.Join(w.Space.Status().Problems, "\n")
		var list struct {
			Operations []struct {
				OpID       string `json:"op_id"`
				WaitingFor string `json:"waiting_for"`
			}
		}
		return strings.Contains(problems, pending.OpID) || strings.Contains(problems, alice.Grant.Owner) &&
			w.Call("GET", "/v1/operations", nil, &list) == http.StatusOK && len(list.Operations) == 1 && list.Operations[0].WaitingFor != ""
	})
	if nc, err := alice.Dial(); !world.Refused(err) {
		nc.Close()
		t.Errorf("whose end is under way: %v", err)
	}
	if got := retire(w, bob); got.Outcome != "retired" {
		t.Errorf("somebody else's: %+v", got)
	}
	put(before.Data)
	if got := retire(w, world.Person{Grant: alice.Grant}); got.Outcome != "retired" {
		t.Errorf("once it can be read: %+v", got)
	}
	w.Poll("no problem to be left", func() bool { s := w.Space.Status(); return len(s.Problems) == 0 && s.State == messages.SpaceReady })
}
