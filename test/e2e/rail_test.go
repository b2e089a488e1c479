package e2e_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/test/world"
)

// overTheRail asks once the rail is served and returns what came of it.
func overTheRail(w *world.World, nc *nats.Conn, subject, body string) (got proof, refusedWith string) {
	w.Helper()
	var answer *nats.Msg
	w.Poll("the rail to be served", func() (served bool) {
		var err error
		answer, err = nc.Request(subject, []byte(body), world.Patience)
		if err != nil && !errors.Is(err, nats.ErrNoResponders) {
			w.Fatal(err)
		}
		return err == nil
	})
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		w.Errorf("%s: %v", answer.Data, err)
	}
	return got, answer.Header.Get("Nats-Service-Error-Code")
}

// TestRetireOverTheRail has a service ask for the end of somebody who is connected,
// while an operator asks for the same: there is one retirement, and both are told of
// it. Of those who are not meant nobody is touched.
func TestRetireOverTheRail(t *testing.T) {
	w := world.Open(t)
	awaitPlane(w)
	manager := w.Person("manager", "laptop", "demo.>")
	alice := w.Person("alice", "laptop", "demo.>")
	dropped := make(chan struct{}, 1)
	alice.Connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { dropped <- struct{}{} }))
	bob := w.Person("bob", "laptop", "demo.>").Connect()
	nc, subject := w.OnBehalf(manager, alice)
	if _, refusedWith := overTheRail(w, nc, subject, `{"op_id":"rrrrrrrrrrrrrrrrrrrrrrrrrrrr"}`); refusedWith != "403" {
		t.Errorf("an id that does not derive: %q", refusedWith)
	}
	var both sync.WaitGroup
	var byRail, byDoor proof
	both.Go(func() {
		var refusedWith string
		if byRail, refusedWith = overTheRail(w, nc, subject, `{"wait_ms":60000}`); refusedWith != "" {
			t.Errorf("the rail refuses: %s", refusedWith)
		}
	})
	both.Go(func() { byDoor = retire(w, alice) })
	both.Wait()
	within(t, dropped, "the connection is dropped")
	if byRail.OpID == "" || byRail.OpID != byDoor.OpID || byRail.UID != alice.Grant.UID || byRail.Evicted != 1 || byDoor.Evicted != 1 || len(byRail.Servers) != 1 {
		t.Errorf("the rail says %+v, the face %+v", byRail, byDoor)
	}
	if again, refusedWith := overTheRail(w, nc, subject, ""); refusedWith != "" || again.OpID != byRail.OpID || again.Outcome != "retired" {
		t.Errorf("again: %s %+v", refusedWith, again)
	}
	if !bob.IsConnected() {
		t.Error("somebody else was dropped")
	}
	// The next life is not the one that may be asked for.
	next := w.Person("alice", "laptop", "demo.>")
	if _, refusedWith := overTheRail(w, nc, subject, ""); refusedWith != "401" {
		t.Errorf("of a life that is over: %q", refusedWith)
	}
	if status := w.Call("GET", next.Path(), nil, nil); status != http.StatusOK {
		t.Errorf("the next life: %d", status)
	}
	next.Connect()
}
