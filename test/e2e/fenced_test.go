package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// TestAskedWhileFenced asks for what needs the claim while the plane is fenced and
// cannot heal: the caller is told to come again, and nothing of what an operator is
// told. Whatever needs no claim goes on, and when the plane has healed so does the rest.
func TestAskedWhileFenced(t *testing.T) {
	t.Parallel() // a takeover waits for 10 s whether the plane heals
	inject := &faults.Injector{}
	w := world.Open(t, inject.Into)
	held := awaitPlane(w)
	alice, bob := w.Person("alice", "laptop", "demo.>"), w.Person("bob", "laptop", "demo.>")
	opening := inject.Arm(faults.Fault{Actor: "plane/claim", Harm: faults.Hold, Message: &supervisor.Open{}})
	defer opening.Disarm()
	if _, _, err := w.Space.Kill(w.Context(), "plane/ledger-scanner", "panic"); err != nil {
		t.Fatal(err)
	}
	<-opening.Struck()
	if s := planeStatus(w); s.State != messages.PlaneFenced || s.HeldByUs || s.WaitingFor == "" || s.Next == "" {
		t.Errorf("the plane is %+v", s)
	}

	var refusal struct {
		Error struct {
			Code, Reason, Message string
			Retryable             bool
		}
	}
	takeover := map[string]string{"owner": alice.Grant.Owner, "actor": alice.Grant.Actor}
	status := w.Call("POST", "/v1/takeover", takeover, &refusal)
	if e := refusal.Error; status != http.StatusServiceUnavailable || e.Code != "unavailable" || !e.Retryable || !strings.Contains(e.Message, "retry shortly") {
		t.Errorf("told %d %+v", status, e)
	}
	for _, secret := range []string{"scanner", "panic", "cotal:", "generation", held.Holder} {
		if strings.Contains(refusal.Error.Message, secret) {
			t.Errorf("the caller is told %q", refusal.Error.Message)
		}
	}

	alice.Connect()
	if _, status := w.Exchange("alice", "laptop"); status != http.StatusOK {
		t.Errorf("an exchange: %d", status)
	}
	w.Person("carol", "laptop", "demo.>").Connect()
	if status := w.Call("DELETE", bob.Path(), nil, nil); status != http.StatusOK {
		t.Errorf("a revocation: %d", status)
	}
	if nc, err := bob.Dial(); !world.Refused(err) {
		nc.Close()
		t.Errorf("the revoked one: %v", err)
	}

	opening.Disarm()
	if again := awaitPlane(w); again.Generation != held.Generation+1 {
		t.Errorf("after %+v came %+v", held, again)
	}
	if status := w.Call("POST", "/v1/takeover", takeover, nil); status != http.StatusOK {
		t.Errorf("after the fence: %d", status)
	}
}
