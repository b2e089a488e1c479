package faults_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// endsWithin is how long an operation may take that was struck once. A message that is
// lost costs as long as its answer is waited for.
const endsWithin = 40 * time.Second

// operation is what the face says of one.
type operation struct {
	OpID    string   `json:"op_id"`
	UID     string   `json:"uid"`
	Outcome string   `json:"outcome"`
	Evicted int      `json:"evicted"`
	Vacuous bool     `json:"vacuous"`
	Servers []string `json:"servers"`
}

// TestBarriers strikes each step of a takeover and of a retirement: they end all the
// same, with the proof, and nobody comes back.
func TestBarriers(t *testing.T) {
	t.Parallel()
	for _, r := range faults.Barriers() {
		t.Run(r.Name(), func(t *testing.T) {
			t.Parallel()
			barrier(t, r)
		})
	}
}

func barrier(t *testing.T, r faults.BarrierRow) {
	inject := &faults.Injector{}
	w := world.Open(t, inject.Into)
	awaitReady(w)
	alice := w.Person("alice", "laptop", "demo.>")
	dropped := make(chan struct{}, 1)
	alice.Connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { dropped <- struct{}{} }))
	bob := w.Person("bob", "laptop", "demo.>").Connect()

	armed := inject.Arm(r.Fault)
	defer armed.Disarm()
	got := run(w, r.Kind, alice)
	await(t, armed.Struck(), "the message") // some come a moment after the answer
	if want := map[messages.OperationKind]string{messages.Takeover: "taken-over", messages.Retirement: "retired"}[r.Kind]; got.Outcome != want ||
		got.UID != alice.Grant.UID || got.Vacuous || len(got.Servers) != 1 {
		t.Errorf("it ended as %+v", got)
	}
	select {
	case <-dropped:
	default:
		t.Error("it is proved gone, and was not dropped")
	}
	if nc, err := alice.Dial(); !world.Refused(err) {
		nc.Close()
		t.Errorf("the old bearer: %v", err)
	}
	if !bob.IsConnected() {
		t.Error("somebody else was dropped")
	}
	awaitReady(w)
	w.Poll("nothing to be owed", func() bool {
		var list struct{ Operations []operation }
		return w.Call("GET", "/v1/operations", nil, &list) == http.StatusOK && len(list.Operations) == 0
	})
	if again := run(w, r.Kind, alice); again.OpID != got.OpID || again.Evicted != got.Evicted || !slices.Equal(again.Servers, got.Servers) {
		t.Errorf("first %+v, then %+v", got, again)
	}
}

// run has an operation done, asking again as a script would while it is not.
func run(w *world.World, kind messages.OperationKind, p world.Person) operation {
	w.Helper()
	path, body := "/v1/retire", map[string]string{"owner": p.Grant.Owner, "actor": p.Grant.Actor, "uid": p.Grant.UID}
	if kind == messages.Takeover {
		path, body["op_id"] = "/v1/takeover", faults.TakeoverID
	}
	deadline := time.Now().Add(endsWithin)
	for {
		var got operation
		switch status := w.Call("POST", path+"?wait=30", body, &got); {
		case status == http.StatusOK:
			return got
		case status != http.StatusServiceUnavailable || time.Now().After(deadline):
			w.Fatalf("%s: %d %+v", kind, status, got)
		}
	}
}
