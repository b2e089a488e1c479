package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// owedNow lists the operations that are begun and not over.
func owedNow(w *world.World) []said {
	w.Helper()
	var list struct{ Operations []said }
	if status := w.Call("GET", "/v1/operations", nil, &list); status != http.StatusOK {
		w.Fatalf("operations: %d", status)
	}
	return list.Operations
}

// leaving asks over HTTP for what takes its time, until the context ends.
func leaving(ctx context.Context, w *world.World, path string, body map[string]string) error {
	capability, err := os.ReadFile(w.Space.CapabilityFile())
	if err != nil {
		return err
	}
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, "POST", w.Space.URL()+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+string(capability))
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		err = errors.Join(fmt.Errorf("answered %d", answer.StatusCode), answer.Body.Close())
	}
	return err
}

// TestWhoLeavesStopsNothing has callers hang up in the middle of what they asked for:
// it goes on, a repeat joins it, and nobody else may have its id meanwhile.
func TestWhoLeavesStopsNothing(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	w := world.Open(t, inject.Into)
	awaitPlane(w)
	manager, alice, bob := w.Person("manager", "laptop", "demo.>"), w.Person("alice", "laptop", "demo.>"), w.Person("bob", "laptop", "demo.>")
	dropped := make(chan struct{}, 1)
	alice.Connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { dropped <- struct{}{} }))
	theirs := bob.Connect()
	const op = "tttttttttttttttttttttttttttt"
	ask := map[string]string{"owner": alice.Grant.Owner, "actor": "laptop", "uid": alice.Grant.UID, "op_id": op}

	// A takeover, whose caller hangs up.
	held := inject.Arm(faults.Fault{Actor: "plane/retirement/sweeper", Harm: faults.Hold})
	ctx, leave := context.WithCancel(w.Context())
	left := make(chan error, 1)
	go func() { left <- leaving(ctx, w, "/v1/takeover", ask) }()
	within(t, held.Struck(), "the eviction")
	leave()
	if err := within(t, left, "the caller leaves"); !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves: %v", err)
	}
	// Meanwhile nobody has anybody else ended by its id, nor by another one.
	for name, c := range map[string]struct {
		body map[string]string
		want messages.Error
	}{
		"somebody else's life": {map[string]string{"owner": bob.Grant.Owner, "actor": "laptop", "op_id": op}, messages.OperationConflict},
		"another life":         {map[string]string{"owner": alice.Grant.Owner, "actor": "laptop", "uid": bob.Grant.UID, "op_id": op}, messages.OperationConflict},
		"another operation":    {map[string]string{"owner": alice.Grant.Owner, "actor": "laptop", "op_id": "oooooooooooooooooooooooooooo"}, messages.GateShut},
	} {
		var got said
		if w.Call("POST", "/v1/takeover", c.body, &got); got.Error.Reason != c.want.Reason {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if owed := owedNow(w); len(owed) != 1 || owed[0].OpID != op {
		t.Errorf("owed are %+v", owed)
	}
	held.Disarm()
	var got proof
	if status := w.Call("POST", "/v1/takeover", ask, &got); status != http.StatusOK || got.OpID != op || got.Evicted != 1 || got.Epoch != 2 {
		t.Errorf("who asks again: %d %+v", status, got)
	}
	within(t, dropped, "the connection is dropped")

	// A retirement, whose caller on the rail is gone, and one over HTTP too.
	held = inject.Arm(faults.Fault{Actor: "plane/retirement/sweeper", Harm: faults.Hold})
	nc, subject := w.OnBehalf(manager, alice)
	w.Poll("the rail to be served", func() bool {
		_, err := nc.Request(subject, []byte(`{"op_id":"x"}`), world.Patience)
		return err == nil
	})
	if err := errors.Join(nc.PublishRequest(subject, nc.NewRespInbox(), []byte(`{"wait_ms":60000}`)), nc.Flush()); err != nil {
		t.Fatal(err)
	}
	within(t, held.Struck(), "the eviction")
	nc.Close()
	ctx, leave = context.WithCancel(w.Context())
	go func() {
		left <- leaving(ctx, w, "/v1/retire", map[string]string{"owner": alice.Grant.Owner, "actor": "laptop"})
	}()
	leave()
	if err := within(t, left, "the caller leaves"); !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves: %v", err)
	}
	held.Disarm()
	again, subject := w.OnBehalf(manager, alice)
	if got := onTheRail(w, again, subject, `{"wait_ms":60000}`); got.Outcome != "retired" {
		t.Errorf("who asks again: %+v", got)
	}
	if got := onTheRail(w, again, subject, ""); got.Outcome != "retired" || !got.Already {
		t.Errorf("once it is over: %+v", got)
	}
	if !theirs.IsConnected() {
		t.Error("somebody else was dropped")
	}
}

// TestRapidRequestsOverAFence asks a thousand times for one end, over the rail and over
// HTTP, while the plane is fenced and closed: each is answered, with the proof, that it
// goes on, or that nobody is there to ask, and there is one operation.
func TestRapidRequestsOverAFence(t *testing.T) {
	t.Parallel()
	const askers, times = 20, 25 // each over the rail and over HTTP
	w := world.Open(t)
	held := awaitPlane(w)
	manager, alice := w.Person("manager", "laptop", "demo.>"), w.Person("alice", "laptop", "demo.>")
	dropped := make(chan struct{}, 1)
	alice.Connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { dropped <- struct{}{} }))
	nc, subject := w.OnBehalf(manager, alice)
	overTheRail(w, nc, subject, `{"op_id":"x"}`)
	body := map[string]string{"owner": alice.Grant.Owner, "actor": "laptop", "uid": alice.Grant.UID}
	var mu sync.Mutex
	outcomes, ids := map[string]int{}, map[string]bool{}
	note := func(door string, got said) {
		mu.Lock()
		defer mu.Unlock()
		outcomes[door+" "+got.Outcome+got.Error.Reason]++
		if got.OpID != "" {
			ids[got.OpID] = true
		}
	}
	begun := make(chan struct{})
	var all sync.WaitGroup
	for i := range askers {
		all.Go(func() {
			for j := range times {
				if i == 0 && j == 2 {
					close(begun)
				}
				var got said
				m, err := nc.Request(subject, []byte(`{"wait_ms":0}`), world.Patience)
				switch {
				case errors.Is(err, nats.ErrNoResponders):
					got.Error.Reason = "nobody"
				case err != nil:
					t.Errorf("the rail: %v", err)
				case json.Unmarshal(m.Data, &got) != nil:
					t.Errorf("the rail: %s", m.Data)
				}
				note("rail", got)
			}
		})
		all.Go(func() {
			for range times {
				var got said
				if w.Call("POST", "/v1/retire?wait=0", body, &got) == 0 {
					t.Error("nobody is there")
				}
				note("HTTP", got)
			}
		})
	}
	within(t, begun, "it is asked for")
	for _, path := range []string{"plane/claim", "plane/ledger-scanner"} {
		if _, _, err := w.Space.Kill(w.Context(), path, "panic"); err != nil {
			t.Error(err)
		}
		w.Poll("the plane to be held again", func() bool {
			s := w.Space.Status().Plane
			return s.State == messages.PlaneActive && s.Generation > held.Generation
		})
		held = w.Space.Status().Plane
	}
	all.Wait()
	for outcome := range outcomes {
		switch outcome {
		case "rail retired", "HTTP retired", "rail operation.pending", "HTTP operation.pending", "rail nobody", "rail plane.away", "rail actor.away":
		default:
			t.Errorf("%s", outcome)
		}
	}
	got := retire(w, alice)
	within(t, dropped, "the connection is dropped")
	if delete(ids, got.OpID); len(ids) != 0 {
		t.Errorf("it ended as %+v, others are %v", got, ids)
	}
}
