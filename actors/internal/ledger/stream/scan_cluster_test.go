package stream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
)

// TestAMilestoneCatchesAReplicaThatLags scans at a replica that is cut off once the
// consumer is made. Without a milestone the scan cannot know of what was
// acknowledged since; with one it does not count.
func TestAMilestoneCatchesAReplicaThatLags(t *testing.T) {
	t.Parallel()
	for _, insists := range []bool{false, true} {
		t.Run(fmt.Sprintf("milestone %v", insists), func(t *testing.T) { scanWhileLagging(t, insists) })
	}
}

func scanWhileLagging(t *testing.T, insists bool) {
	c := startCluster(t)
	cfg := config("s", 3)
	admin := admin{t, dial(t, c.servers[0].ClientURL(), nats.Timeout(patience))}
	open(t, admin.conn, cfg)
	leader := -1
	eventually(t, "the stream has a leader", func() error {
		if leader = c.leader(cfg.Name()); leader < 0 {
			return errors.New("none")
		}
		return nil
	})
	lagging := (leader + 1) % 3
	writer := stream.New(dial(t, c.servers[leader].ClientURL(), nats.Timeout(patience)), cfg, stream.NewLanes(1))
	write := func(key string) uint64 {
		at, err := ledger.NewStore(writer, ledger.DefaultPatience()).Apply(t.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Create(key, []byte("v"))}})
		if err != nil {
			t.Error(err)
		}
		return at
	}
	for i := range 5 {
		write(fmt.Sprintf("k.%d", i))
	}
	// The sixth row, and behind it the milestone: they are acknowledged at 6 and 7, when
	// the replica has been cut off.
	milestone := ledger.Milestone{Key: "head", Revision: 7}
	cut := false
	elsewhere := func() {}
	wire := &tapped{seen: map[string]int{}, before: map[string]func(){"CONSUMER.MSG.NEXT.": func() {
		if cut {
			return
		}
		if !admin.runsAt(cfg, fmt.Sprintf("n%d", lagging)) {
			elsewhere()
			return
		}
		cut = true
		c.cut(lagging)
		write("k.5")
		if at := write("head"); at != milestone.Revision {
			t.Errorf("the milestone is at %d", at)
		}
	}}}
	ask := ledger.Scan{Filter: "k.*"}
	if insists {
		ask.Milestone = milestone
	}
	scanner := stream.NewScanner(dial(t, c.servers[lagging].ClientURL(), nats.Timeout(patience), nats.SetCustomDialer(wire)), cfg)
	var rows []ledger.Row
	var err error
	for range 30 { // the consumer may stand on any of the three
		ctx, cancel := context.WithCancel(t.Context())
		elsewhere = cancel
		rows, err = scanner.Scan(ctx, ask)
		cancel()
		if cut {
			break
		}
	}
	switch {
	case !cut:
		t.Fatal("the consumer never stood on the replica")
	case insists && (!errors.Is(err, messages.ScanIncomplete) || rows != nil):
		t.Errorf("it counts: %v, %v", rows, err)
	case !insists && (err != nil || len(rows) != 5):
		t.Errorf("the replica did not lag: %d rows, %v", len(rows), err)
	}
	t.Log(err)
}

// runsAt reports whether the scanner's one consumer stands on that server.
func (a admin) runsAt(cfg stream.Config, name string) bool {
	a.Helper()
	for lane := range stream.ScanLanes {
		found, err := a.api(fmt.Sprintf("CONSUMER.INFO.%s.%s-%d", cfg.Name(), stream.LedgerScanName, lane), nil)
		if err != nil {
			continue
		}
		at, _ := found["cluster"].(map[string]any)
		return at["leader"] == name
	}
	return false
}
