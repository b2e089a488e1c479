package e2e_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/test/world"
)

// proof is what a finished operation answers.
type proof struct {
	OpID      string            `json:"op_id"`
	UID       string            `json:"uid"`
	Outcome   string            `json:"outcome"`
	Evicted   int               `json:"evicted"`
	Vacuous   bool              `json:"vacuous"`
	Servers   []string          `json:"servers"`
	TookMS    int64             `json:"took_ms"`
	Frontiers map[string]uint64 `json:"frontiers"`
	Epoch     uint64            `json:"epoch"`
}

// retire retires a person and returns the proof.
func retire(w *world.World, p world.Person) proof {
	w.Helper()
	var got proof
	if status := w.Call("POST", "/v1/retire", map[string]string{"owner": p.Grant.Owner, "actor": p.Grant.Actor}, &got); status != http.StatusOK {
		w.Fatalf("retire: %d %+v", status, got)
	}
	return got
}

// TestRetireWithLiveConnections retires somebody who is connected through every door
// and by a client that never gives up: it is proved within a second that he is gone,
// and he does not come back but by a new grant, as somebody else.
func TestRetireWithLiveConnections(t *testing.T) {
	options, secure := manyDoors(t)
	w := world.NewOn(t, options)
	w.Start()
	awaitPlane(w)
	alice := w.Person("alice", "laptop", "demo.>")
	bob := w.Person("bob", "laptop", "demo.>").Connect()

	gone := make(chan struct{}, 5)    // one for each connection
	refused := make(chan error, 5*64) // more than it takes a client to give up
	for _, door := range [][]nats.Option{nil, nil, {secure}, {secure}, {byWebSocket(w)}} {
		nc := alice.Connect(append(door, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.IgnoreAuthErrorAbort(),
			nats.DisconnectErrHandler(func(*nats.Conn, error) { gone <- struct{}{} }),
			nats.ReconnectHandler(func(*nats.Conn) { t.Error("it came back") }),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
				select {
				case refused <- err:
				default:
				}
			}))...)
		if err := nc.Publish("demo.x", nil); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	got := retire(w, alice)
	took := time.Since(began)
	if got.Outcome != "retired" || got.UID != alice.Grant.UID || got.Evicted != 5 || got.Vacuous || len(got.Servers) != 1 || len(got.Frontiers) == 0 {
		t.Errorf("the proof is %+v", got)
	}
	if took > time.Second && !raceDetector {
		t.Errorf("proved after %s", took)
	}
	for range 5 {
		within(t, gone, "a connection is dropped")
	}
	if err := within(t, refused, "a client comes back"); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("it is told %v", err)
	}
	if nc, err := alice.Dial(); !world.Refused(err) {
		nc.Close()
		t.Errorf("the old bearer: %v", err)
	}
	if !bob.IsConnected() {
		t.Error("somebody else was dropped")
	}
	again := w.Person("alice", "laptop", "demo.>")
	if again.Grant.UID == alice.Grant.UID {
		t.Error("the new grant has the old uid")
	}
	again.Connect()
	if nc, err := alice.Dial(); !world.Refused(err) {
		nc.Close()
		t.Errorf("the old bearer after the new grant: %v", err)
	}
	// Whoever asks for the old life again is told what was.
	var same proof
	status := w.Call("POST", "/v1/retire", map[string]string{"owner": alice.Grant.Owner, "actor": alice.Grant.Actor, "uid": alice.Grant.UID}, &same)
	if status != http.StatusOK || same.OpID != got.OpID || same.Evicted != 5 {
		t.Errorf("again: %d %+v", status, same)
	}
}

// TestTakeover ends what was issued and leaves the principal: his connections are
// dropped, his old bearers are refused, and his next exchange begins anew.
func TestTakeover(t *testing.T) {
	w := world.Open(t)
	awaitPlane(w)
	alice := w.Person("alice", "laptop", "demo.>")
	dropped := make(chan struct{}, 1)
	alice.Connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { dropped <- struct{}{} }))
	var got proof
	status := w.Call("POST", "/v1/takeover", map[string]string{"owner": alice.Grant.Owner, "actor": alice.Grant.Actor}, &got)
	if status != http.StatusOK || got.Outcome != "taken-over" || got.Evicted != 1 || got.Epoch != 2 || got.UID != alice.Grant.UID {
		t.Fatalf("takeover: %d %+v", status, got)
	}
	within(t, dropped, "the connection is dropped")
	if nc, err := alice.Dial(); !world.Refused(err) {
		nc.Close()
		t.Errorf("the old bearer: %v", err)
	}
	token, code := w.Exchange("alice", "laptop")
	if code != http.StatusOK {
		t.Fatalf("exchange: %d", code)
	}
	w.With(alice.Grant, token).Connect()
}

// TestRevokeThenGrant has somebody revoked and granted again at once: the new life
// waits until the old one is proved to be over.
func TestRevokeThenGrant(t *testing.T) {
	w := world.Open(t)
	awaitPlane(w)
	alice := w.Person("alice", "laptop", "demo.>")
	dropped := make(chan struct{}, 1)
	alice.Connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { dropped <- struct{}{} }))
	if status := w.Call("DELETE", alice.Path(), nil, nil); status != http.StatusOK {
		t.Fatalf("revoke: %d", status)
	}
	if nc, err := alice.Dial(); !world.Refused(err) {
		nc.Close()
		t.Errorf("the revoked one: %v", err)
	}
	again := w.Person("alice", "laptop", "demo.>")
	within(t, dropped, "the old connection is dropped")
	again.Connect()
	var list struct{ Operations []proof }
	if status := w.Call("GET", "/v1/operations", nil, &list); status != http.StatusOK || len(list.Operations) != 0 {
		t.Errorf("operations: %d %+v", status, list)
	}
}

// within waits for what must happen.
func within[T any](t *testing.T, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(world.Patience):
		t.Fatalf("waited in vain: %s", what)
	}
	return v
}
