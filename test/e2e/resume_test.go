package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// TestCloseWhileARetirementRuns closes a space in the middle of a retirement: the close
// does not wait for it, nothing is let in meanwhile, and the next start ends it, while
// it answers connects from the first moment.
func TestCloseWhileARetirementRuns(t *testing.T) {
	inject := &faults.Injector{}
	w := world.Open(t, inject.Into)
	awaitPlane(w)
	alice, bob := w.Person("alice", "laptop", "demo.>"), w.Person("bob", "laptop", "demo.>")
	dropped := make(chan struct{}, 1)
	alice.Connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { dropped <- struct{}{} }))
	lost := inject.Arm(faults.Fault{Actor: "plane/observer", Harm: faults.Drop, Message: messages.SweepConnections{}, Always: true})
	ask := map[string]string{"owner": alice.Grant.Owner, "actor": alice.Grant.Actor, "uid": alice.Grant.UID}
	if status := w.Call("POST", "/v1/retire?wait=0", ask, nil); status != http.StatusServiceUnavailable {
		t.Fatalf("retire: %d", status)
	}
	within(t, lost.Struck(), "the first sweep")
	began := time.Now()
	w.Close()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the close waited %s for it", took)
	}
	select {
	case <-dropped:
		t.Error("it was dropped without a sweep")
	default:
	}
	lost.Disarm()
	w.Start()
	bob.Connect() // whatever is owed
	if nc, err := alice.Dial(); !world.Refused(err) {
		nc.Close()
		t.Errorf("whose end is owed: %v", err)
	}
	within(t, dropped, "the connection is dropped after the next start")
	var got proof
	if status := w.Call("POST", "/v1/retire", ask, &got); status != http.StatusOK || got.Outcome != "retired" || got.Evicted != 1 {
		t.Errorf("retire: %d %+v", status, got)
	}
}
