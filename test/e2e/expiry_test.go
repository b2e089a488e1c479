package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// shortLife is what nobody's connection outlives in these tests. Beyond it a retirement
// waits for connects that had begun, and for clocks that differ: 10 s together.
const shortLife = 4 * time.Second

// systemKeys are the secrets of the system account.
var systemKeys = []string{"sys-observer.seed", "sys-evictor.seed"}

// hosted is a stage on which the keys of the system account are somebody else's.
func hosted(t *testing.T) *world.World {
	t.Helper()
	w := world.New(t, func(c *space.Config) { c.Eviction, c.BearerLifetime = space.EvictionExpiry, shortLife })
	for _, name := range systemKeys {
		if err := os.Remove(filepath.Join(w.Init.SecretsDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// comes lets somebody exchange and connect, who is dropped without coming back.
func comes(w *world.World, p world.Person, options ...nats.Option) (*nats.Conn, error) {
	w.Helper()
	token, status := w.Exchange(p.Sub, p.Grant.Actor)
	if status != http.StatusOK {
		return nil, fmt.Errorf("exchange: %d", status)
	}
	return w.With(p.Grant, token).Dial(append(options, nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
}

// operationShown is an operation as it is shown while it goes on.
type operationShown struct {
	proof
	Eviction   string `json:"eviction"`
	Step       string `json:"step"`
	Doing      string `json:"doing"`
	Total      int    `json:"total"`
	WaitingFor string `json:"waiting_for"`
}

// askRetire asks for a retirement without waiting for it, and returns its id.
func askRetire(w *world.World, p world.Person) string {
	w.Helper()
	var refusal struct {
		Error struct {
			Reason string `json:"reason"`
			OpID   string `json:"op_id"`
		} `json:"error"`
	}
	status := w.Call("POST", "/v1/retire?wait=0", map[string]string{"owner": p.Grant.Owner, "actor": p.Grant.Actor}, &refusal)
	if status != http.StatusServiceUnavailable || refusal.Error.Reason != messages.OperationPending.Reason || refusal.Error.OpID == "" {
		w.Fatalf("retire: %d %+v", status, refusal)
	}
	return refusal.Error.OpID
}

// awaitShown waits until an operation is shown as it should be.
func awaitShown(w *world.World, id, what string, holds func(operationShown) bool) operationShown {
	w.Helper()
	var shown operationShown
	w.Poll(what, func() bool {
		shown = operationShown{}
		status := w.Call("GET", "/v1/operations/"+id, nil, &shown)
		return status == http.StatusOK && holds(shown)
	})
	return shown
}

func waitsForTime(o operationShown) bool {
	return o.Total > 0 && strings.Contains(o.WaitingFor, "the longest permission runs out at ")
}

// TestSystemKeysAreNeededUnlessSaidOtherwise has a space refuse to start without the
// keys, unless its configuration says so.
func TestSystemKeysAreNeededUnlessSaidOtherwise(t *testing.T) {
	w := hosted(t)
	w.Config.Eviction = ""
	_, err := space.Start(w.Context(), w.System, w.Config)
	if !errors.Is(err, messages.KeysUnusable) {
		t.Fatalf("got %v", err)
	}
	for _, name := range systemKeys {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
	w.NoConnections()
}

// TestEvictionByExpiry retires somebody in a space that cannot ask the servers: he is
// refused at once, his connection stands until its permission runs out, and then, and
// not before, he is proved gone.
func TestEvictionByExpiry(t *testing.T) {
	t.Parallel()
	w := hosted(t)
	w.Start()
	awaitPlane(w)
	for _, a := range w.Space.Tree() {
		if a.Path == "plane/evictor" || a.State != "open" {
			t.Errorf("%s is %s", a.Path, a.State)
		}
	}
	var labels []string
	for _, c := range w.Space.Connections() {
		labels = append(labels, c.Label)
	}
	if !slices.Contains(labels, "cotal:auth-observer:main") || slices.Contains(labels, "cotal:auth-evictor:main") {
		t.Errorf("its connections are %q", labels)
	}
	if s := w.Space.Status(); s.State != messages.SpaceReady || s.Cause != "" || len(s.Problems) > 0 {
		t.Errorf("it is %+v", s)
	}

	alice, bob := w.Person("alice", "laptop", "demo.>"), w.Person("bob", "laptop", "demo.>")
	dropped := make(chan time.Time, 1)
	if _, err := comes(w, alice, nats.ClosedHandler(func(*nats.Conn) { dropped <- time.Now() })); err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	id := askRetire(w, alice)
	if nc, err := alice.Dial(); !world.Refused(err) {
		nc.Close()
		t.Errorf("the retired one: %v", err)
	}
	shown := awaitShown(w, id, "the retirement to wait", waitsForTime)
	if shown.Outcome != "pending" || shown.Eviction != "" || len(dropped) > 0 {
		t.Errorf("it is shown as %+v", shown)
	}
	var list struct{ Operations []operationShown }
	if status := w.Call("GET", "/v1/operations", nil, &list); status != http.StatusOK || len(list.Operations) != 1 || list.Operations[0].WaitingFor == "" {
		t.Errorf("operations: %d %+v", status, list)
	}
	// Somebody else comes and goes, and is told by when he is gone.
	if _, err := comes(w, bob); err != nil {
		t.Error(err)
	}
	var revoked struct {
		OpID   string    `json:"op_id"`
		EndsBy time.Time `json:"ends_by"`
	}
	if status := w.Call("DELETE", bob.Path(), nil, &revoked); status != http.StatusOK || revoked.OpID == "" ||
		revoked.EndsBy.Before(asked.Add(shortLife)) || revoked.EndsBy.After(time.Now().Add(shortLife+10*time.Second)) {
		t.Errorf("revoke: %d %+v", status, revoked)
	}
	if status := w.Call("DELETE", "/v1/roster/n1", nil, nil); status != http.StatusPreconditionFailed {
		t.Errorf("forget a server: %d", status)
	}

	at := within(t, dropped, "the server drops whose time is over")
	end := awaitShown(w, id, "the retirement to end", func(o operationShown) bool { return o.Outcome != "pending" })
	if end.Outcome != "retired" || end.Eviction != string(messages.EvictionExpired) || end.Evicted != 0 || end.Vacuous || len(end.Servers) > 0 || len(end.Frontiers) == 0 {
		t.Errorf("the proof is %+v", end)
	}
	if took := time.Since(asked); took < shortLife || time.Now().Before(at) {
		t.Errorf("it was proved after %v", took)
	}
	if nc, err := alice.Dial(); !world.Refused(err) {
		nc.Close()
		t.Errorf("the old bearer: %v", err)
	}
	// The second did not wait for the first and then for himself.
	awaitShown(w, revoked.OpID, "the other to end", func(o operationShown) bool {
		return o.Outcome == "retired" && o.Eviction == string(messages.EvictionExpired)
	})
	if took := time.Since(asked); took > 2*(shortLife+10*time.Second) {
		t.Errorf("both took %v", took)
	}
	again := w.Person("alice", "laptop", "demo.>")
	if _, err := comes(w, again); err != nil || again.Grant.UID == alice.Grant.UID {
		t.Errorf("a new life: %v", err)
	}
}

// TestTwoProcessesWithoutSystem has two processes on such a space: no connect fails,
// while one of them stands still and when it is killed; the other takes the plane over
// by what its own account can see, and ends the retirement that the first had begun.
func TestTwoProcessesWithoutSystem(t *testing.T) {
	t.Parallel()
	w := hosted(t)
	first := startHolder(t, w.Config)
	w.Start()
	var before messages.PlaneStatus
	w.Poll("the second to wait", func() bool {
		before = w.Space.Status().Plane
		return before.State == messages.PlaneStandby && before.Generation > 0
	})
	if before.HeldByUs || before.WaitingFor == "" || before.Next == "" {
		t.Errorf("it says %+v", before)
	}
	alice, bob := w.Person("alice", "laptop", "demo.>"), w.Person("bob", "laptop", "demo.>")
	if _, err := comes(w, bob); err != nil {
		t.Fatal(err)
	}
	connects := func(during string) {
		t.Helper()
		for range 20 {
			nc, err := comes(w, alice)
			if err != nil {
				t.Fatalf("%s: %v", during, err)
			}
			nc.Close()
		}
	}
	connects("both answer")
	first.signal(syscall.SIGSTOP)
	connects("the holder stands still")
	// It still has its connections, and so the plane: nobody can drop them.
	if s := w.Space.Status().Plane; s.State != messages.PlaneStandby || s.Generation != before.Generation {
		t.Errorf("while the holder stands still: %+v", s)
	}
	first.signal(syscall.SIGCONT)
	connects("it goes on")

	id := askRetire(w, bob)
	awaitShown(w, id, "the holder to have begun", func(o operationShown) bool { return o.Step == string(messages.StepRevoked) })
	first.kill()
	killed := time.Now()
	connects("the holder is dead")
	after := awaitPlane(w)
	t.Logf("taken over %v after the kill", time.Since(killed))
	if after.Generation != before.Generation+1 || after.Holder == before.Holder {
		t.Errorf("after %+v came %+v", before, after)
	}
	if nc, err := comes(w, bob); err == nil {
		nc.Close()
		t.Error("who is being retired came in")
	}
	awaitShown(w, id, "the retirement to wait", waitsForTime)
	end := awaitShown(w, id, "the retirement to end", func(o operationShown) bool { return o.Outcome != "pending" })
	if took := time.Since(killed); end.Outcome != "retired" || end.Eviction != string(messages.EvictionExpired) || took < shortLife {
		t.Errorf("the proof is %+v after %v", end, took)
	}
	// Whoever is healed takes back what is his, without anybody who kicks.
	if _, _, err := w.Space.Kill(context.Background(), "plane/ledger-scanner", "panic"); err != nil {
		t.Fatal(err)
	}
	w.Poll("the plane to heal", func() bool {
		s := w.Space.Status().Plane
		return s.State == messages.PlaneActive && s.HeldByUs && s.Generation > after.Generation
	})
	connects("it is healed")
}
