package face

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestFailuresRollOutOfTheWindow(t *testing.T) {
	c := &clock{at: time.Unix(1_700_000_000, 0)}
	f := newFailures(c.now)
	for i := range FailuresAllowed {
		if wait := f.count("192.0.2.1:1000"); wait != 0 {
			t.Fatalf("failure %d must wait %v", i+1, wait)
		}
		c.at = c.at.Add(time.Second)
	}
	if wait := f.count("192.0.2.1:2000"); wait != FailureWindow-FailuresAllowed*time.Second {
		t.Fatalf("the one too many waits %v", wait)
	}
	if wait := f.count("192.0.2.2:1000"); wait != 0 {
		t.Fatalf("another peer waits %v", wait)
	}
	c.at = c.at.Add(FailureWindow - FailuresAllowed*time.Second)
	if wait := f.count("192.0.2.1:1000"); wait != 0 {
		t.Fatalf("waits %v although the first failure has left the window", wait)
	}
	if wait := f.count("192.0.2.1:1000"); wait != time.Second {
		t.Fatalf("waits %v, want until the second failure leaves", wait)
	}
}

func TestFailuresForgetWhoFailedLongestAgo(t *testing.T) {
	c := &clock{at: time.Unix(1_700_000_000, 0)}
	f := newFailures(c.now)
	for i := range 3 * maxPeers {
		f.count(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
	}
	if len(f.peers) != maxPeers || f.recent.Len() != maxPeers {
		t.Fatalf("remembers %d peers, %d in order", len(f.peers), f.recent.Len())
	}
	if _, there := f.peers[peerOf("10.0.0.0:1")]; there {
		t.Fatal("the first peer is remembered")
	}
}

func TestPeers(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1:1", "192.0.2.1:2", true},
		{"192.0.2.1:1", "192.0.2.2:1", false},
		{"[::ffff:192.0.2.1]:1", "192.0.2.1:1", true},
		{"[2001:db8::1]:1", "[2001:db8::ffff:1]:1", true},
		{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		{"[fe80::1%eth0]:1", "[fe80::2%eth1]:1", true},
		{"", "@", true},
	} {
		if got := peerOf(c.a) == peerOf(c.b); got != c.same {
			t.Errorf("%s and %s are the same peer: %v", c.a, c.b, got)
		}
	}
}

func TestTurns(t *testing.T) {
	turns := newTurns(1, 1, time.Hour)
	giveBack, err := turns.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		again, err := turns.take(t.Context())
		if err == nil {
			again()
		}
		got <- err
	}()
	waitFor(t, func() bool { return len(turns.waiting) == 1 })
	if _, err := turns.take(t.Context()); !errors.Is(err, messages.Busy) {
		t.Fatalf("one more than may wait got %v", err)
	}
	giveBack()
	if err := <-got; err != nil {
		t.Fatalf("who waited got %v", err)
	}
}

func TestTurnsEndWithPatienceOrContext(t *testing.T) {
	turns := newTurns(1, 1, time.Millisecond)
	if _, err := turns.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := turns.take(t.Context()); !errors.Is(err, messages.Busy) {
		t.Fatalf("got %v after the patience", err)
	}
	turns.patience = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.take(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v after the client left", err)
	}
	if len(turns.waiting) != 0 {
		t.Fatal("somebody still waits")
	}
}

func TestAccepted(t *testing.T) {
	var a accepted
	if !a.begin() {
		t.Fatal("a new one refuses")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v while one is in work", err)
	}
	a.stop()
	if a.begin() {
		t.Fatal("took one in after stop")
	}
	done := make(chan error, 1)
	go func() { done <- a.wait(t.Context()) }()
	a.end()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestRoutes(t *testing.T) {
	var rs routes
	rs.on("GET", "/v1/grants", endpoint{})
	rs.on("POST", "/v1/grants", endpoint{})
	rs.on("GET", "/v1/grants/{owner}/{actor}", endpoint{})
	rs.on("GET", "/v1/events", endpoint{streams: true})
	for path, want := range map[string]string{
		"/v1/grants": "/v1/grants", "/v1/grants/a/b": "/v1/grants/{owner}/{actor}", "/v1/grants/a%2Fb/c": "/v1/grants/{owner}/{actor}",
		"/": "", "": "", "/v1/grants/": "", "/v1/grants//b": "", "//v1/grants": "", "/v1/grants/a": "", "/v1/grants/a/b/": "",
		"/v1/../v1/grants": "", "/V1/grants": "", "/v1/grants/a/%zz": "", "/v1%2Fgrants": "",
	} {
		got := ""
		r, parts := rs.find(path)
		if r != nil {
			got = r.pattern
		}
		if got != want {
			t.Errorf("%s found %q, want %q", path, got, want)
		}
		if path == "/v1/grants/a%2Fb/c" && (parts["owner"] != "a/b" || parts["actor"] != "c") {
			t.Errorf("parts %v", parts)
		}
	}
	if got := rs[0].allow(); got != "GET, HEAD, POST" {
		t.Errorf("Allow is %q", got)
	}
	if _, is := rs[2].endpoint("HEAD"); is {
		t.Error("HEAD of a stream is answered")
	}
}

// waitFor polls where the condition has no event of its own.
func waitFor(t *testing.T, met func() bool) {
	t.Helper()
	deadline, tick := time.After(10*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-deadline:
			t.Fatal("the condition was not met in time")
		case <-tick.C:
		}
	}
}
