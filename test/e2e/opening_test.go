package e2e_test

import (
	"net/http"
	"testing"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// TestAPlaneThatOpens holds the claim up before it is made: the space is ready, says
// that its plane opens, and serves whoever needs no claim; then the plane is held.
func TestAPlaneThatOpens(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	armed := inject.Arm(faults.Fault{Actor: "plane/ledger-scanner", Harm: faults.Hold, Message: messages.GetConnection{}})
	defer armed.Disarm()
	w := world.New(t, func(c *space.Config) { c.Middleware = inject.Middleware })
	w.Start()
	<-armed.Struck()
	var status messages.Status
	if code := w.Call("GET", "/v1/status", nil, &status); code != http.StatusOK || status.State != messages.SpaceReady || status.Plane != (messages.PlaneStatus{State: messages.PlaneOpening}) {
		t.Errorf("the status is %d %+v", code, status)
	}
	alice := w.Person("alice", "laptop", "demo.>")
	alice.Connect()
	if code := w.Call("DELETE", alice.Path(), nil, nil); code != http.StatusOK {
		t.Errorf("a revocation: %d", code)
	}
	if nc, err := alice.Dial(); !world.Refused(err) {
		nc.Close()
		t.Errorf("the revoked one: %v", err)
	}
	armed.Disarm()
	if held := awaitPlane(w); held.Generation != 1 || held.Since.IsZero() {
		t.Errorf("the plane is %+v", held)
	}
}
