package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// TestControllerRows has the issuer die over controllers' questions.
func TestControllerRows(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	w := world.Open(t, inject.Into)
	var boss world.Grant
	if status := w.Call("POST", "/v1/grants", map[string]any{"sub": "boss", "actor": "cli", "scope": []string{"supervise"}}, &boss); status != http.StatusCreated {
		t.Fatalf("grant: %d", status)
	}
	if _, err := w.Space.RegisterHostInstance(w.Context(), hosted, hostedName, space.ControllerPrincipal(boss.Owner, hostedName)); err != nil {
		t.Fatal(err)
	}
	ask := messages.AskController{Person: messages.ControllerPerson{Principal: messages.Principal{Owner: boss.Owner, Actor: boss.Actor}},
		Request: messages.ControllerRequest{Door: messages.DoorPrepare, Space: "main", Actor: boss.Actor, Endpoint: hosted, Instance: hostedName,
			Keys: messages.ControllerKeys{Supervisor: someUser(t), Executor: someUser(t), Server: someUser(t), Recorder: someUser(t), Ledger: someUser(t)}}}
	for i, r := range faults.ControllerRows() {
		t.Run(string(r.Way), func(t *testing.T) {
			ask.Request.ID = fmt.Sprintf("request-%020d", i)
			life := w.Actor("plane/issuer").Generation
			armed := inject.Arm(faults.Fault{Actor: "plane/issuer", Message: faults.ControllerMessage,
				Harm: map[faults.Way]faults.Harm{faults.Strike: faults.Throw, faults.Lose: faults.Drop}[r.Way]})
			defer armed.Disarm()
			ctx, cancel := w.Context(), context.CancelFunc(func() {})
			if r.Told {
				ctx, cancel = context.WithTimeout(ctx, faults.Within/2)
			}
			defer cancel()
			first, err := w.Space.AskController(ctx, ask)
			await(t, armed.Struck(), "the question")
			if (err != nil) != r.Told {
				t.Fatalf("the caller is told %+v, %v", first, err)
			}
			if r.Way == faults.Strike {
				w.AwaitLife("plane/issuer", life+1)
			}
			again, err := w.Space.AskController(w.Context(), ask)
			if err != nil || len(again.Credentials) != 2 {
				t.Fatalf("asked again: %+v, %v", again, err)
			}
			if !r.Told && !reflect.DeepEqual(first, again) {
				t.Errorf("answered %+v, then %+v", first, again)
			}
			all, err := w.Space.Controllers(w.Context())
			if err != nil || len(all.Items) != 1 || all.Items[0].Live != 2*(i+1) {
				t.Errorf("listed %+v, %v", all, err)
			}
		})
	}
	if state := w.Space.Status(); state.State != messages.SpaceReady || strings.Contains(fmt.Sprint(state.Problems), hostedName) {
		t.Errorf("the space is %+v", state)
	}
}

// someUser is the public key of a user that nobody has.
func someUser(t *testing.T) string {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}
