package e2e_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// planeStatus is what GET /v1/status says of the plane.
func planeStatus(w *world.World) messages.PlaneStatus {
	w.Helper()
	var answer struct{ Plane messages.PlaneStatus }
	if status := w.Call("GET", "/v1/status", nil, &answer); status != http.StatusOK {
		w.Fatalf("status: %d", status)
	}
	return answer.Plane
}

// awaitPlane waits until the plane is active, and held by this process.
func awaitPlane(w *world.World) messages.PlaneStatus {
	w.Helper()
	var last messages.PlaneStatus
	w.Poll("the plane to be held", func() bool {
		last = w.Space.Status().Plane
		return last.State == messages.PlaneActive && last.HeldByUs
	})
	return last
}

// TestFenceHealsUnderLoad ends each part of the claim in each way, under a load of
// connects, exchanges and revokes: none of them fails, and the plane is held again
// in time, by a claim of the next generation.
func TestFenceHealsUnderLoad(t *testing.T) {
	w := world.Open(t)
	held := awaitPlane(w)
	if held.Holder == "" || held.Generation == 0 || planeStatus(w).State != messages.PlaneActive {
		t.Errorf("status: %+v", held)
	}
	ctx, stop := context.WithCancel(context.Background())
	l := world.StartLoad(ctx, w)
	for _, path := range []string{"plane/ledger-scanner", "plane/records-scanner", "plane/claim"} {
		for _, how := range []string{"panic", "stop", "disconnect"} {
			if how == "disconnect" && !hasConnection(path) {
				continue
			}
			before := awaitPlane(w).Generation
			began := time.Now()
			if _, _, err := w.Space.Kill(ctx, path, how); err != nil {
				t.Fatal(err)
			}
			w.Poll("the plane to heal", func() bool {
				s := w.Space.Status().Plane
				return s.State == messages.PlaneActive && s.Generation > before
			})
			if took := time.Since(began); took > healsWithin {
				t.Errorf("%s of %s: healed after %s", how, path, took)
			}
			if !l.AwaitConnect(healsWithin) {
				t.Errorf("%s of %s: no connect", how, path)
			}
		}
	}
	stop()
	l.Wait()
	l.Check(t)
	if failed := l.Failed(); len(failed) > 0 {
		t.Errorf("these failed, which need no claim: %v", failed)
	}
}

// TestTwoProcessesOneSpace has two processes on one space: both answer connects, one
// holds the plane, and the other takes over when it closes.
func TestTwoProcessesOneSpace(t *testing.T) {
	first := world.Open(t)
	held := awaitPlane(first)
	second := first.Beside()
	second.Poll("the second to wait", func() bool {
		s := second.Space.Status().Plane
		return s.State == messages.PlaneStandby && s.Holder == held.Holder
	})
	if s := planeStatus(second); s.HeldByUs || s.WaitingFor == "" || s.Next == "" || s.Generation != held.Generation {
		t.Errorf("the standby says %+v", s)
	}
	alice := second.Person("alice", "laptop", "demo.>")
	alice.Connect()
	first.Close()
	taken := awaitPlane(second)
	if taken.Generation != held.Generation+1 || taken.Holder == held.Holder {
		t.Errorf("after %+v came %+v", held, taken)
	}
	alice.Connect()
}

// TestClaimMoved has the record of the plane overwritten by somebody who can: the
// plane is fenced at once, says what is wrong and what to do, and connects go on; when
// the record is restored the plane is taken again.
func TestClaimMoved(t *testing.T) {
	w := world.Open(t)
	held := awaitPlane(w)
	alice := w.Person("alice", "laptop", "demo.>")
	js, err := jetstream.New(owner(w))
	if err != nil {
		t.Fatal(err)
	}
	const stream, row = "KV_cotal_authority_main", "$KV.cotal_authority_main.plane"
	ours, err := js.Stream(w.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	before, err := ours.GetLastMsgForSubject(w.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(w.Context(), row, []byte("junk")); err != nil {
		t.Fatal(err)
	}
	w.Poll("the plane to be refused", func() bool {
		s := w.Space.Status().Plane
		return s.State == messages.PlaneStandby && !s.HeldByUs && s.WaitingFor != "" && s.Next != ""
	})
	alice.Connect()
	if _, err := js.Publish(w.Context(), row, before.Data); err != nil {
		t.Fatal(err)
	}
	if again := awaitPlane(w); again.Generation != held.Generation+1 {
		t.Errorf("after %+v came %+v", held, again)
	}
}
