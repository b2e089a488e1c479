package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/test/world"
)

// crowd is how many come at once. What is promised is a thousand on a machine that
// does nothing else, as a run of its own; beside other tests it is fewer.
var crowd = flag.Int("crowd", 150, "how many clients come at once in the storms")

// TestFirstExchangesAtOnce has a crowd exchange for the first time in
// the same moment.
func TestFirstExchangesAtOnce(t *testing.T) {
	w := world.Open(t)
	proofs := make([]string, *crowd)
	together(func(i int) {
		sub := fmt.Sprintf("user-%d", i)
		w.Grant(sub, "laptop", "demo.>")
		proofs[i] = w.IDToken(sub)
	})
	var mu sync.Mutex
	statuses := map[int]int{}
	together(func(i int) {
		status := w.Call("POST", "/exchange", map[string]any{"id_token": proofs[i], "actor": "laptop"}, nil)
		mu.Lock()
		defer mu.Unlock()
		statuses[status]++
	})
	if statuses[http.StatusOK] != *crowd {
		t.Errorf("statuses: %v", statuses)
	}
}

// TestConnectStorm has a crowd of clients of default patience connect in the same
// moment. Under the race detector the broker itself cannot.
func TestConnectStorm(t *testing.T) {
	if raceDetector {
		t.Skip("skipped by name: TestConnectStorm needs a build without the race detector, under which the broker is too slow")
	}
	w := world.Open(t)
	alice := w.Person("alice", "laptop", "demo.>")
	var mu sync.Mutex
	failures := map[string]int{}
	together(func(int) {
		nc, err := alice.DialPlainly()
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failures[kindOf(err)]++
			return
		}
		t.Cleanup(nc.Close)
	})
	if len(failures) > 0 {
		t.Errorf("failures: %v", failures)
	}
}

// TestStormKicksNobody has three crowds connect through two processes at once, each
// client trying again until it is in: however busy they are, neither process takes the
// other for dead and has its connections dropped.
func TestStormKicksNobody(t *testing.T) {
	if raceDetector {
		t.Skip("skipped by name: TestStormKicksNobody needs a build without the race detector, under which the broker is too slow")
	}
	log := &kicks{}
	w := world.Open(t, func(c *space.Config) { c.Logger = slog.New(log) })
	awaitPlane(w)
	w.Beside() // logs there too
	alice := w.Person("alice", "laptop", "demo.>")
	deadline := time.Now().Add(2 * world.Patience)
	together(func(int) {
		for range 3 { // one after another, so that the storm lasts
			nc, err := alice.DialPlainly()
			for err != nil && time.Now().Before(deadline) {
				nc, err = alice.DialPlainly()
			}
			if err != nil {
				t.Errorf("not in: %s", kindOf(err))
				return
			}
			t.Cleanup(nc.Close)
		}
	})
	if told := log.told(); len(told) > 0 {
		t.Errorf("somebody was kicked: %q", told)
	}
}

// kicks is a log that keeps what is said of kicked peers.
type kicks struct {
	mu    sync.Mutex
	lines []string
}

func (*kicks) Enabled(context.Context, slog.Level) bool { return true }
func (k *kicks) WithAttrs([]slog.Attr) slog.Handler     { return k }
func (k *kicks) WithGroup(string) slog.Handler          { return k }

func (k *kicks) Handle(_ context.Context, r slog.Record) error {
	if !strings.Contains(r.Message, "peer") {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lines = append(k.lines, r.Message)
	return nil
}

func (k *kicks) told() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lines
}

// kindOf drops addresses from an error's text.
func kindOf(err error) string {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return "timeout"
	}
	return err.Error()
}

// together runs do a crowd of times at once.
func together(do func(i int)) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range *crowd {
		all.Go(func() {
			<-begin
			do(i)
		})
	}
	close(begin)
	all.Wait()
}
