package e2e_test

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/test/world"
)

// TestEachStartIsTheNextEpoch starts a space three times from one state directory: it
// registers as the same instance of `auth`, each time as its next process, and a life
// that is opened anew within a process is none.
func TestEachStartIsTheNextEpoch(t *testing.T) {
	w := world.New(t)
	var instance string
	for epoch := range uint64(3) {
		w.Start()
		awaitPlane(w)
		if _, _, err := w.Space.Kill(w.Context(), "plane/registrar", "stop"); err != nil {
			t.Fatal(err)
		}
		w.AwaitLife("plane/registrar", 2)
		held := w.Space.Status().Plane.Holder
		if instance == "" {
			instance = held
		}
		gate := gateOf(w, held)
		if held != instance || gate.ProcessEpoch != epoch || gate.State != "open" || gate.Endpoint != "auth" {
			t.Errorf("start %d: instance %s, gate %+v", epoch, held, gate)
		}
		w.Close()
	}
}

// gate is the record of an instance of the service itself.
type gate struct {
	Endpoint     string `json:"endpoint"`
	State        string `json:"state"`
	ProcessEpoch uint64 `json:"processEpoch"`
}

func gateOf(w *world.World, instance string) (g gate) {
	w.Helper()
	js, err := jetstream.New(owner(w))
	if err != nil {
		w.Fatal(err)
	}
	stream, err := js.Stream(w.Context(), "KV_cotal_authority_main")
	if err != nil {
		w.Fatal(err)
	}
	row, err := stream.GetLastMsgForSubject(w.Context(), "$KV.cotal_authority_main.inst.auth."+instance)
	if err != nil {
		w.Fatal(err)
	}
	if err := json.Unmarshal(row.Data, &g); err != nil {
		w.Fatal(err)
	}
	return g
}
