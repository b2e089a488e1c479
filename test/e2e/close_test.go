package e2e_test

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// TestCloseOrder watches the close from outside: admission first, then the plane,
// the responders last.
func TestCloseOrder(t *testing.T) {
	s, seen := &script{}, &custody{}
	w := world.New(t, seen.watch, func(c *space.Config) { c.Middleware = s.around })
	w.Start()
	w.Close()
	var closes []string
	for _, told := range s.told[len(openOrder):] {
		closes = append(closes, strings.TrimPrefix(told, "close "))
	}
	for i, stage := range [][]string{
		{"drain callout/1", "drain callout/2", "drain exchange", "exchange", "provisioning"},
		{"plane/retirement/sweeper", "plane/retirement/desk", "plane/admin"},
		{"plane/reader", "plane/ledger-scanner", "plane/records-scanner"},
		{"plane/claim"},
		{"plane/barrier", "plane/issuer", "plane/writer", "plane/observer", "plane/evictor", "plane/registrar"},
		{"callout/1", "callout/2", "presence"},
	} {
		got := closes[:min(len(stage), len(closes))]
		closes = closes[len(got):]
		slices.Sort(got)
		slices.Sort(stage)
		if !slices.Equal(got, stage) {
			t.Errorf("stage %d: got %v, want %v", i+1, got, stage)
		}
	}
	if state := w.Space.Status().State; state != messages.SpaceClosed {
		t.Errorf("a closed space is %s", state)
	}
	held, ended := seen.read(t)
	stages := map[string]int{"plane/registrar": 0, "plane/admin": 1, "plane/reader": 2, "plane/ledger-scanner": 2, "plane/records-scanner": 2,
		"plane/barrier": 3, "plane/issuer": 3, "plane/writer": 3, "plane/observer": 3, "plane/evictor": 3, "callout/1": 4, "callout/2": 4, "presence": 4}
	if !slices.IsSortedFunc(held, byOpenOrder) || len(held) != len(ended) || len(held) < len(stages) {
		t.Errorf("opened %v, ended %v", held, ended)
	}
	if !slices.IsSortedFunc(ended, func(a, b string) int { return stages[a] - stages[b] }) {
		t.Errorf("the connections ended as %v", ended)
	}
}

// TestBrokerRestart stops the broker under an open space and starts it again: the
// space says so meanwhile, nothing is restarted from outside, and clients of
// default configuration are back too.
func TestBrokerRestart(t *testing.T) {
	w := world.Open(t)
	alice := w.Person("alice", "laptop", "demo.>")
	old := alice.Connect()
	w.StopBroker()
	w.AwaitState(messages.SpaceUnavailable)
	w.Await("the cause to name the plane", func() bool { return strings.Contains(w.Space.Status().Cause, "plane/") })
	w.RestartBroker()
	began := time.Now()
	w.AwaitState(messages.SpaceReady)
	if nc, err := alice.DialBy(began.Add(healsWithin)); err != nil {
		t.Errorf("connects fail %s after the broker's return: %v", time.Since(began), err)
	} else {
		nc.Close()
	}
	if err := old.FlushTimeout(world.Patience); err != nil {
		t.Errorf("the old client is not back: %v", err)
	}
	if err := w.Space.Err(); err != nil {
		t.Errorf("the space failed: %v", err)
	}
}

// TestPortTakenAfterTheClaim has the last part to open, the face, find its port taken
// when the plane is held already: the start fails and says so, the plane is given back,
// and a space beside it in the same actor system notices nothing.
func TestPortTakenAfterTheClaim(t *testing.T) {
	beside := world.Open(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	w := world.New(t, func(c *space.Config) { c.Listen, c.NoStandby = taken.Addr().String(), true })
	w.System = beside.System
	before := beside.Space.Tree()
	if err := startFails(t, w); !strings.Contains(err.Error(), "exchange") || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
	if row := claimOf(w); !strings.Contains(row, `"state":"released"`) || !strings.Contains(row, `"generation":1`) {
		t.Errorf("the claim is %s", row)
	}
	if state := beside.Space.Status().State; state != messages.SpaceReady || !slices.Equal(beside.Space.Tree(), before) {
		t.Errorf("the space beside it is %s: %+v", state, beside.Space.Tree())
	}
}

// TestTenClosesAtOnce closes a space ten times at the same moment, with one that fails:
// it is done once, and all get the one answer.
func TestTenClosesAtOnce(t *testing.T) {
	s := &script{panics: map[string]bool{"close plane/issuer": true}}
	w := world.New(t, func(c *space.Config) { c.Middleware = s.around })
	w.Start()
	answers := make(chan error, 10) // one for each close
	for range cap(answers) {
		go func() { answers <- w.Space.Close(w.Context()) }()
	}
	var said []string
	for range cap(answers) {
		if err := <-answers; err == nil || !strings.Contains(err.Error(), "plane/issuer") {
			t.Errorf("got %v", err)
		} else if said = append(said, err.Error()); said[0] != err.Error() {
			t.Errorf("one is told %q, another %q", said[0], err)
		}
	}
	<-w.Space.Closed()
	asked := map[string]int{}
	for _, told := range s.told {
		asked[told]++
		if asked[told] > 1 {
			t.Errorf("%q was asked for more than once", told)
		}
	}
	if err := w.Space.Close(w.Context()); err != nil {
		t.Errorf("what is closed: %v", err)
	}
}
