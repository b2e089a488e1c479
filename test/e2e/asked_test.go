package e2e_test

import (
	"net/http"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// TestAnyProcessRetires asks the process that does not hold the plane: it answers with
// the proof that the other one made.
func TestAnyProcessRetires(t *testing.T) {
	holder := world.Open(t)
	awaitPlane(holder)
	standby := holder.Beside()
	alice := holder.Person("alice", "laptop", "demo.>")
	dropped := make(chan struct{}, 1)
	alice.Connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { dropped <- struct{}{} }))
	if got := retire(standby, alice); got.Outcome != "retired" || got.Evicted != 1 {
		t.Errorf("the proof is %+v", got)
	}
	within(t, dropped, "the connection is dropped")
}

// TestRevokeWhileNobodyHoldsThePlane has somebody revoked by a process that only waits,
// while the holder is gone and nobody can tell: he is denied at once, and gone as soon
// as somebody holds the plane.
func TestRevokeWhileNobodyHoldsThePlane(t *testing.T) {
	holder := world.Open(t)
	awaitPlane(holder)
	alice := holder.Person("alice", "laptop", "demo.>")
	dropped := make(chan struct{}, 1)
	alice.Connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { dropped <- struct{}{} }))
	other := holder.Person("bob", "laptop", "demo.>")
	theirs := other.Connect()
	mend := spoilClaim(holder)
	if status := holder.Call("DELETE", alice.Path(), nil, nil); status != http.StatusOK {
		t.Fatalf("revoke: %d", status)
	}
	if nc, err := alice.Dial(); !world.Refused(err) {
		nc.Close()
		t.Errorf("the revoked one: %v", err)
	}
	var waits struct{ Error struct{ Reason, Next string } }
	status := holder.Call("POST", "/v1/retire?wait=0", map[string]string{"owner": alice.Grant.Owner, "actor": alice.Grant.Actor, "uid": alice.Grant.UID}, &waits)
	if status != http.StatusServiceUnavailable || waits.Error.Reason != messages.OperationPending.Reason {
		t.Errorf("retire: %d %+v", status, waits)
	}
	// A takeover needs a holder: it is refused, says so, and is not begun later.
	bob := map[string]string{"owner": other.Grant.Owner, "actor": "laptop"}
	if status := holder.Call("POST", "/v1/takeover", bob, &waits); status != http.StatusServiceUnavailable || waits.Error.Reason != messages.PlaneAway.Reason || waits.Error.Next != "authplane status" {
		t.Errorf("takeover: %d %+v", status, waits)
	}
	select {
	case <-dropped:
		t.Error("somebody has dropped it")
	default:
	}
	mend()
	within(t, dropped, "the connection is dropped")
	if got := retire(holder, alice); got.Outcome != "retired" || got.Evicted != 1 {
		t.Errorf("the proof is %+v", got)
	}
	if owed := owedNow(holder); len(owed) != 0 || !theirs.IsConnected() {
		t.Errorf("owed are %+v, and the other is connected: %v", owed, theirs.IsConnected())
	}
}

// spoilClaim makes the record of the plane something that nobody can read, so that no
// process holds it, until it is mended.
func spoilClaim(w *world.World) (mend func()) {
	w.Helper()
	js, err := jetstream.New(owner(w))
	if err != nil {
		w.Fatal(err)
	}
	const row = "$KV.cotal_authority_main.plane"
	before := claimOf(w)
	put := func(value string) {
		if _, err := js.Publish(w.Context(), row, []byte(value)); err != nil {
			w.Fatal(err)
		}
	}
	put("junk")
	w.Poll("the plane to be refused", func() bool {
		s := w.Space.Status().Plane
		return s.State == messages.PlaneStandby && !s.HeldByUs
	})
	return func() { put(before) }
}
