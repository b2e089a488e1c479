package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/test/world"
)

// TestACrowdIsRevoked revokes many at once: what the process asks for is one row, and
// they travel together instead of writing against each other, or one after the other.
func TestACrowdIsRevoked(t *testing.T) {
	const crowd = 32
	w := world.Open(t)
	awaitPlane(w)
	people := make([]world.Person, crowd)
	for i := range people {
		people[i] = w.Person(fmt.Sprintf("alice-%d", i), "laptop", "demo.>")
	}
	defer spoilClaim(w)() // so that nobody takes back what is asked
	nc := owner(w)
	written := make(chan *nats.Msg, crowd*crowd)
	if _, err := nc.ChanSubscribe("$KV.cotal_authority_main.asked.*", written); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, p := range people {
		all.Go(func() {
			if status := w.Call("DELETE", p.Path(), nil, nil); status != http.StatusOK {
				t.Errorf("revoke: %d", status)
			}
		})
	}
	all.Wait()
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	tries := len(written)
	if tries == 0 || tries > crowd {
		t.Fatalf("%d revocations were tried %d times", crowd, tries)
	}
	var last struct{ UIDs []string }
	for range tries {
		if err := json.Unmarshal((<-written).Data, &last); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range people {
		if !slices.Contains(last.UIDs, p.Grant.UID) {
			t.Errorf("the end of %s is not asked for", p.Name())
		}
	}
	if len(last.UIDs) != crowd {
		t.Errorf("asked for are the ends of %d", len(last.UIDs))
	}
}
