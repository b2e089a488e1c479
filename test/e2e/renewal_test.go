package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// TestEverythingIsRenewed has every standing connection of a space replaced twice, as
// their permissions run out, while people connect, log in, are granted and revoked:
// nothing of it fails, no actor dies, and the plane, which is held by connections that
// do not run out, stays held by the same claim.
func TestEverythingIsRenewed(t *testing.T) {
	seen := &custody{}
	w := world.Open(t, seen.watch, func(c *space.Config) { c.ConnectionLifetime = 4 * time.Second })
	held := awaitPlane(w)
	alice := w.Person("alice", "laptop", "demo.>")
	standing := alice.Connect()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	tries := make([]int, 3) // by who tries
	for i, try := range []func(int) error{
		func(int) error {
			nc, err := alice.Dial()
			if err == nil {
				nc.Close()
			}
			return err
		},
		func(int) error {
			if _, status := w.Exchange("alice", "laptop"); status != http.StatusOK {
				return fmt.Errorf("an exchange: %d", status)
			}
			return nil
		},
		func(n int) error {
			var g world.Grant
			if status := w.Call("POST", "/v1/grants", map[string]string{"sub": fmt.Sprint("passer-by-", n), "actor": "laptop"}, &g); status != http.StatusCreated {
				return fmt.Errorf("a grant: %d", status)
			}
			if status := w.Call("DELETE", w.With(g, "").Path(), nil, nil); status != http.StatusOK {
				return fmt.Errorf("a revocation: %d", status)
			}
			return nil
		},
	} {
		all.Go(func() {
			for ; ctx.Err() == nil; tries[i]++ {
				if err := try(tries[i]); err != nil {
					t.Errorf("try %d: %v", tries[i], err)
				}
			}
		})
	}
	renewed := []string{"plane/writer", "plane/reader", "plane/issuer", "plane/barrier", "plane/observer", "plane/evictor", "plane/admin",
		"callout/1", "callout/2", "presence"}
	w.Poll("every connection to be replaced twice", func() bool {
		opened := map[string]int{}
		lists, _ := seen.read(t)
		for _, actor := range lists {
			opened[actor]++
		}
		for _, actor := range renewed {
			if opened[actor] < 3 {
				return false
			}
		}
		return true
	})
	stop()
	all.Wait()
	t.Logf("%d connects, %d exchanges, %d granted and revoked", tries[0], tries[1], tries[2])
	if err := standing.FlushTimeout(world.Patience); err != nil || standing.Statistics.Reconnects > 0 {
		t.Errorf("who was connected all the time: %v, %d reconnects", err, standing.Statistics.Reconnects)
	}
	for _, a := range w.Space.Tree() {
		if a.Restarts > 0 || a.LastError != "" {
			t.Errorf("%s was restarted %d times: %s", a.Path, a.Restarts, a.LastError)
		}
	}
	var list struct{ Denials []messages.Denial }
	w.Call("GET", "/v1/denials", nil, &list)
	for _, d := range list.Denials {
		t.Errorf("not admitted: %+v", d)
	}
	if now := planeStatus(w); now.Generation != held.Generation || !now.Since.Equal(held.Since) {
		t.Errorf("the plane was %+v and is %+v", held, now)
	}
}
