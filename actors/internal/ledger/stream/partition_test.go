package stream_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
)

// observation is one read: when it began, and what it said.
type observation struct {
	began time.Time
	value string
	err   error
}

// TestStaleLeaderIsNeverBelieved cuts the leader off from its followers while a
// reader sits with it. As soon as the others have acknowledged a new value, no read
// that began later may return the old one.
func TestStaleLeaderIsNeverBelieved(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	cfg := config("s", 3)
	setup := dial(t, c.servers[0].ClientURL())
	met := open(t, setup, cfg)
	write(t, stream.New(setup, cfg, stream.NewLanes(stream.MaxLanes)), "k", "old")

	leader := c.leader(cfg.Name())
	if leader < 0 {
		t.Fatal("no leader after an acknowledged write")
	}
	near := dial(t, c.servers[leader].ClientURL())
	far := dial(t, c.servers[(leader+1)%3].ClientURL())
	reader := stream.NewLeaderReader(near, stream.ReaderConfig{Config: cfg, Remembered: met})
	stream.DoubtFor(reader, 0) // as one that has run for long
	run(t, reader)
	usable(t, reader)

	c.cut(leader)
	proved, raw := observe(reader.Get), observe(stream.New(near, cfg, stream.NewLanes(1)).Get)
	write(t, stream.New(far, cfg, stream.NewLanes(stream.MaxLanes)), "k", "new")
	acknowledged := time.Now()
	// Until the old leader has noticed, or long enough for it to have answered wrongly.
	eventually(t, "the old leader was asked for a while after", func() error {
		if time.Since(acknowledged) < 3*time.Second {
			return errors.New("not yet")
		}
		return nil
	})
	believed, refused, stale := 0, 0, 0
	for _, o := range proved.end() {
		switch {
		case errors.Is(o.err, messages.Unproved):
			refused++
		case o.err != nil:
			t.Errorf("read: %v", o.err)
		case o.began.After(acknowledged) && o.value != "new":
			t.Fatalf("%v after the new value was acknowledged the reader says %q", o.began.Sub(acknowledged), o.value)
		default:
			believed++
		}
	}
	for _, o := range raw.end() {
		if o.err == nil && o.began.After(acknowledged) && o.value == "old" {
			stale++
		}
	}
	if believed == 0 || refused == 0 {
		t.Errorf("the cut shows in nothing: %d believed, %d refused", believed, refused)
	}
	t.Logf("%d reads believed, %d refused; without proof %d were stale", believed, refused, stale)
}

// TestAMendedLeaderIsNotBelieved mends the links of a leader that was cut off while it
// still takes itself for the leader: for a moment two servers answer, the new one the
// beats of every reader and the old one, wherever it is faster, the reads.
func TestAMendedLeaderIsNotBelieved(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	cfg := config("s", 3)
	setup := dial(t, c.servers[0].ClientURL())
	met := open(t, setup, cfg)
	write(t, stream.New(setup, cfg, stream.NewLanes(stream.MaxLanes)), "k", "old")
	leader := c.leader(cfg.Name())
	if leader < 0 {
		t.Fatal("no leader after an acknowledged write")
	}
	var readers, bare, synced []*watcher
	var states []func() error
	for i, place := range []int{leader, (leader + 1) % 3, (leader + 2) % 3} {
		conn := dial(t, c.servers[place].ClientURL())
		own := cfg
		own.Instance = strings.Repeat(string(rune('a'+i)), 26)
		reader := stream.NewLeaderReader(conn, stream.ReaderConfig{Config: own, Remembered: met})
		run(t, reader)
		usable(t, reader)
		states = append(states, reader.State)
		readers = append(readers, observe(reader.Get), observe(named(reader.List)))
		bare = append(bare, observe(stream.New(conn, own, stream.NewLanes(1)).Get))
		writer := stream.New(conn, own, stream.NewLanes(1))
		synced = append(synced, observe(afterSync(writer)), observe(named(writer.ListLatest)))
	}
	c.cut(leader)
	far := stream.New(dial(t, c.servers[(leader+1)%3].ClientURL()), cfg, stream.NewLanes(stream.MaxLanes))
	write(t, far, "k", "new")
	write(t, far, "k2", "new")
	acknowledged := time.Now()
	c.mend(leader)
	eventually(t, "everybody believes somebody again, long enough after", func() error {
		if time.Since(acknowledged) < 3*time.Second {
			return errors.New("not yet")
		}
		for _, state := range states {
			if err := state(); err != nil {
				return err
			}
		}
		return nil
	})
	check := func(who string, watchers []*watcher, refusal error) {
		for i, w := range watchers {
			for _, o := range w.end() {
				switch {
				case o.err != nil && !errors.Is(o.err, refusal):
					t.Errorf("%s %d: %v", who, i, o.err)
				case o.err == nil && o.began.After(acknowledged) && o.value != "new":
					t.Errorf("%v after the new value was acknowledged %s %d says %q", o.began.Sub(acknowledged), who, i, o.value)
				}
			}
		}
	}
	check("reader", readers, messages.Unproved)
	check("writer", synced, messages.BrokerAway)
	stale := 0
	for _, w := range bare {
		for _, o := range w.end() {
			if o.err == nil && o.began.After(acknowledged) && o.value == "old" {
				stale++
			}
		}
	}
	t.Logf("without proof %d reads were stale", stale)
}

// afterSync reads as a writer does whose read is all that he has.
func afterSync(b *stream.Backend) getFunc {
	return func(ctx context.Context, key string) (ledger.Row, bool, error) {
		if err := b.Sync(ctx); err != nil {
			return ledger.Row{}, false, err
		}
		return b.Get(ctx, key)
	}
}

// named reads which of the values the names of the rows tell.
func named(list func(ctx context.Context, filter string) ([]string, error)) getFunc {
	return func(ctx context.Context, key string) (ledger.Row, bool, error) {
		keys, err := list(ctx, ">")
		value := "old"
		if slices.Contains(keys, key+"2") {
			value = "new"
		}
		return ledger.Row{Value: []byte(value)}, true, err
	}
}

// watcher reads one key over and over.
type watcher struct {
	stop chan struct{}
	done sync.WaitGroup
	seen []observation
}

func observe(get getFunc) *watcher {
	w := &watcher{stop: make(chan struct{})}
	w.done.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
			}
			o := observation{began: time.Now()}
			ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
			row, _, err := get(ctx, "k")
			cancel()
			o.value, o.err = string(row.Value), err
			w.seen = append(w.seen, o)
		}
	})
	return w
}

func (w *watcher) end() []observation {
	close(w.stop)
	w.done.Wait()
	return w.seen
}

type getFunc func(ctx context.Context, key string) (ledger.Row, bool, error)
