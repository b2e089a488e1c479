package e2e_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/test/world"
)

// TestACrowdIsRevoked revokes many at once: what the process asks for is one row, and
// they queue for it instead of writing against each other.
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
	if tries := len(written); tries < crowd || tries > 2*crowd { // an answer that is lost is asked for again
		t.Errorf("%d revocations were tried %d times", crowd, tries)
	}
}
