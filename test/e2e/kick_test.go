package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/claim"
	"github.com/cotal-ai/authplane/actors/scanner"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// inFlight holds back what a scan has found until it is let go: once a scanner was
// asked, the barrier stands still, so that the guard after the scan waits.
type inFlight struct {
	mu      sync.Mutex
	claim   *actor.PID    // of the life that holds the plane
	armed   bool          // the next scan is held back
	asked   bool          // the scanner was
	held    chan struct{} // closed when the barrier stands still
	release chan struct{}
}

func (f *inFlight) around(path string) []actor.ReceiverMiddleware {
	return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
			if hold := f.meets(path, c, e.Message); hold != nil {
				<-hold
			}
			next(c, e)
		}
	}}
}

// meets notes what matters, and returns what to wait for.
func (f *inFlight) meets(path string, c actor.ReceiverContext, message any) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, scans := message.(scanner.Scan)
	switch {
	case path == "plane/claim":
		f.claim = c.Self()
	case scans && f.armed:
		f.armed, f.asked = false, true
	case path == "plane/barrier" && f.asked:
		f.asked = false
		close(f.held)
		return f.release
	}
	return nil
}

// arm has the next scan held back.
func (f *inFlight) arm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.held, f.release = true, make(chan struct{}), make(chan struct{})
}

// enumerate asks the holder of the plane for everything that a scanner sees, and gives
// the answer.
func (f *inFlight) enumerate(w *world.World, path string) <-chan any {
	f.mu.Lock()
	defer f.mu.Unlock()
	ask := claim.Enumerate{Scanner: path}
	ask.Ask.Filter = ">"
	future, answer := w.System.Root.RequestFuture(f.claim, ask, world.Patience), make(chan any, 1)
	go func() {
		got, err := future.Result()
		if err != nil {
			got = err
		}
		answer <- got
	}()
	return answer
}

// TestScannerKicked has the connection of each scanner ended by the broker while
// people connect, are granted and revoked, and while a scan has found what it looked
// for and not yet said so: the plane is fenced at once, what was found counts for
// nothing, and the plane heals in time; nothing fails meanwhile that needs no claim.
func TestScannerKicked(t *testing.T) {
	flight := &inFlight{}
	w := world.Open(t, func(c *space.Config) { c.Middleware = flight.around })
	awaitPlane(w)
	ctx, stop := context.WithCancel(context.Background())
	l := world.StartLoad(ctx, w)
	for i, path := range []string{"plane/ledger-scanner", "plane/records-scanner"} {
		before := awaitPlane(w)
		flight.arm()
		answer := flight.enumerate(w, path)
		select {
		case <-flight.held:
		case <-time.After(world.Patience):
			t.Fatal("the scan does not come to its guard")
		}
		kick(w, []string{"ledger", "records"}[i])
		began := time.Now()
		w.Poll("the plane to be fenced", func() bool { return w.Space.Status().Plane.State != messages.PlaneActive })
		fenced := time.Since(began)
		if s := w.Space.Status().Plane; s.HeldByUs || s.State != messages.PlaneFenced {
			t.Errorf("%s: the plane is %+v", path, s)
		}
		close(flight.release)
		select {
		case got := <-answer:
			if err, refused := got.(error); !refused {
				t.Errorf("%s: what it found counts: %T", path, got)
			} else {
				t.Log(err)
			}
		case <-time.After(world.Patience):
			t.Error("the scan was never answered")
		}
		w.Poll("the plane to heal", func() bool {
			s := w.Space.Status().Plane
			return s.State == messages.PlaneActive && s.Generation > before.Generation
		})
		if took := time.Since(began); took > healsWithin {
			t.Errorf("%s: fenced after %s, healed after %s", path, fenced, took)
		}
		if !l.AwaitConnect(healsWithin) {
			t.Errorf("%s: no connect", path)
		}
	}
	stop()
	l.Wait()
	l.Check(t)
	if failed := l.Failed(); len(failed) > 0 {
		t.Errorf("these failed, which need no claim: %v", failed)
	}
}

// kick has the broker end the connection that the claim names for one of its scanners.
func kick(w *world.World, which string) {
	w.Helper()
	var row map[string]json.RawMessage
	var named struct {
		ServerID string `json:"serverId"`
		CID      uint64 `json:"cid"`
	}
	err := json.Unmarshal([]byte(claimOf(w)), &row)
	if err = errors.Join(err, json.Unmarshal(row[which], &named)); err != nil || named.CID == 0 {
		w.Fatalf("the claim names %+v, %v", named, err)
	}
	said, err := w.Owner("sys").Request("$SYS.REQ.SERVER."+named.ServerID+".KICK", fmt.Appendf(nil, `{"cid":%d}`, named.CID), world.Patience)
	if err != nil || strings.Contains(string(said.Data), `"error"`) {
		w.Fatalf("kick: %s, %v", said.Data, err)
	}
}
