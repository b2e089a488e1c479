package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Subject is a backend under test.
type Subject struct {
	ledger.Backend
	// Mark leaves a delete marker on a key, as a KV client would.
	Mark func(t *testing.T, key string)
}

// patience for the tests: a slow machine under the race detector may take long.
const patience = 30 * time.Second

// Backend runs the contract of ledger.Backend. open gives a new and empty one.
func Backend(t *testing.T, open func(t *testing.T) Subject) {
	cases := []struct {
		name string
		run  func(*testing.T, context.Context, Subject)
	}{
		{"absence", absence}, {"create", create}, {"replace", replace}, {"touch", touch},
		{"batch", batch}, {"fence", fence}, {"listing", listing}, {"markers", markers},
		{"bad batches", badBatches}, {"largest batch", largestBatch},
		{"contention", contention}, {"many batches", manyBatches}, {"ended context", endedContext},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c.run(t, ctx, open(t))
		})
	}
}

func absence(t *testing.T, ctx context.Context, s Subject) {
	if row, found, err := s.Get(ctx, "a.b"); found || err != nil || row.Revision != 0 {
		t.Fatalf("got %v, %v, %v", row, found, err)
	}
	if keys, err := s.List(ctx, ">"); err != nil || len(keys) != 0 {
		t.Fatalf("got %v, %v", keys, err)
	}
}

func create(t *testing.T, ctx context.Context, s Subject) {
	at := land(t, ctx, s, ledger.Create("a.b", []byte("one")))
	expect(t, ctx, s, "a.b", "one", at)
	refuse(t, ctx, s, ledger.ErrLost, ledger.Create("a.b", []byte("two")))
	expect(t, ctx, s, "a.b", "one", at)
}

func replace(t *testing.T, ctx context.Context, s Subject) {
	first := ledger.Row{Key: "k", Revision: land(t, ctx, s, ledger.Create("k", []byte("one")))}
	second := land(t, ctx, s, ledger.Replace(first, []byte("two")))
	if second <= first.Revision {
		t.Fatalf("revision %d follows %d", second, first.Revision)
	}
	refuse(t, ctx, s, ledger.ErrLost, ledger.Replace(first, []byte("three")))
	refuse(t, ctx, s, ledger.ErrLost, ledger.Replace(ledger.Row{Key: "k", Revision: second + 7}, []byte("three")))
	refuse(t, ctx, s, ledger.ErrLost, ledger.Replace(ledger.Row{Key: "other", Revision: second}, []byte("x")))
	expect(t, ctx, s, "k", "two", second)
}

func touch(t *testing.T, ctx context.Context, s Subject) {
	at := land(t, ctx, s, ledger.Create("k", []byte("same")))
	row := expect(t, ctx, s, "k", "same", at)
	moved := land(t, ctx, s, ledger.Touch(row))
	if moved <= at {
		t.Fatalf("a touch left the revision at %d", moved)
	}
	expect(t, ctx, s, "k", "same", moved)
	refuse(t, ctx, s, ledger.ErrLost, ledger.Touch(row))
}

func batch(t *testing.T, ctx context.Context, s Subject) {
	old := ledger.Row{Key: "old", Revision: land(t, ctx, s, ledger.Create("old", []byte("0")))}
	last := land(t, ctx, s, ledger.Create("x", []byte("1")), ledger.Replace(old, []byte("2")), ledger.Create("y", []byte("3")))
	expect(t, ctx, s, "x", "1", last-2)
	expect(t, ctx, s, "old", "2", last-1)
	expect(t, ctx, s, "y", "3", last)
	// One dead pin, wherever it stands, and nothing of the batch is there.
	for _, place := range []int{0, 1, 2} {
		writes := []ledger.Write{ledger.Create("p", []byte("1")), ledger.Create("q", []byte("2"))}
		writes = slices.Insert(writes, place, ledger.Replace(old, []byte("stale")))
		refuse(t, ctx, s, ledger.ErrLost, writes...)
		for _, key := range []string{"p", "q"} {
			if _, found, err := s.Get(ctx, key); found || err != nil {
				t.Fatalf("%s after a lost batch: %v, %v", key, found, err)
			}
		}
		expect(t, ctx, s, "old", "2", last-1)
	}
}

func fence(t *testing.T, ctx context.Context, s Subject) {
	at := land(t, ctx, s, ledger.Create("plane", []byte("mine")))
	held := ledger.Pin{Key: "plane", Revision: at}
	land(t, ctx, s, ledger.Fenced("owed", []byte("1"), held))
	last := land(t, ctx, s, ledger.Fenced("owed", []byte("2"), held), ledger.Create("op", []byte("x")))
	expect(t, ctx, s, "owed", "2", last-1)
	land(t, ctx, s, ledger.Replace(ledger.Row{Key: "plane", Revision: at}, []byte("yours")))
	refuse(t, ctx, s, ledger.ErrLost, ledger.Fenced("owed", []byte("3"), held))
	refuse(t, ctx, s, ledger.ErrLost, ledger.Create("op2", []byte("x")), ledger.Fenced("owed", []byte("3"), held))
	if _, found, _ := s.Get(ctx, "op2"); found {
		t.Fatal("a fenced batch landed in part")
	}
	expect(t, ctx, s, "owed", "2", last-1)
}

func listing(t *testing.T, ctx context.Context, s Subject) {
	for _, key := range []string{"grant.u.b", "grant.u.a", "grant.v.a", "head.u.a", "grant", "roster"} {
		land(t, ctx, s, ledger.Create(key, []byte("v")))
	}
	for filter, want := range map[string][]string{
		"grant.>":   {"grant.u.a", "grant.u.b", "grant.v.a"},
		"grant.u.*": {"grant.u.a", "grant.u.b"},
		"grant.*":   nil,
		"*.u.a":     {"grant.u.a", "head.u.a"},
		"roster":    {"roster"},
		"none.>":    nil,
		">":         {"grant", "grant.u.a", "grant.u.b", "grant.v.a", "head.u.a", "roster"},
	} {
		if got, err := s.List(ctx, filter); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", filter, got, err, want)
		}
	}
}

func markers(t *testing.T, ctx context.Context, s Subject) {
	at := land(t, ctx, s, ledger.Create("k", []byte("v")))
	s.Mark(t, "k")
	s.Mark(t, "never")
	for _, key := range []string{"k", "never"} {
		if _, found, err := s.Get(ctx, key); found || !errors.Is(err, messages.RowCorrupt) {
			t.Errorf("a marker on %s reads as %v, %v", key, found, err)
		}
		refuse(t, ctx, s, ledger.ErrLost, ledger.Create(key, []byte("reborn")))
	}
	refuse(t, ctx, s, ledger.ErrLost, ledger.Replace(ledger.Row{Key: "k", Revision: at}, []byte("reborn")))
}

func badBatches(t *testing.T, ctx context.Context, s Subject) {
	tooMany := make([]ledger.Write, ledger.MaxBatch+1)
	for i := range tooMany {
		tooMany[i] = ledger.Create("k."+strconv.Itoa(i), []byte("v"))
	}
	for name, b := range map[string]ledger.Batch{
		"empty":          {},
		"too large":      {Writes: tooMany},
		"a key twice":    {Writes: []ledger.Write{ledger.Create("k", nil), ledger.Create("k", nil)}},
		"its own fence":  {Writes: []ledger.Write{ledger.Create("k", nil), ledger.Fenced("o", nil, ledger.Pin{Key: "k"})}},
		"a lost witness": {Writes: []ledger.Write{ledger.Create("k", nil)}, Witness: "o"},
	} {
		if _, err := s.Send(ctx, b); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if keys, err := s.List(ctx, ">"); err != nil || len(keys) != 0 {
		t.Errorf("left behind: %v, %v", keys, err)
	}
}

func largestBatch(t *testing.T, ctx context.Context, s Subject) {
	writes := make([]ledger.Write, ledger.MaxBatch)
	for i := range writes {
		writes[i] = ledger.Create("k."+strconv.Itoa(i), []byte("v"))
	}
	land(t, ctx, s, writes...)
	if keys, err := s.List(ctx, "k.*"); err != nil || len(keys) != len(writes) {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
}

// contention counts one row up from many sides, with a row of each side's own in
// the same batch: no count may be lost or doubled.
func contention(t *testing.T, ctx context.Context, s Subject) {
	const sides, each = 4, 6
	land(t, ctx, s, ledger.Create("sum", []byte("0")))
	store := ledger.NewStore(s.Backend, ledger.DefaultPatience())
	var counting sync.WaitGroup
	for side := range sides {
		counting.Go(func() {
			for n := range each {
				if err := countUp(ctx, store, fmt.Sprintf("side.%d.%d", side, n)); err != nil {
					t.Errorf("side %d: %v", side, err)
				}
			}
		})
	}
	counting.Wait()
	if row, _, err := s.Get(ctx, "sum"); err != nil || string(row.Value) != strconv.Itoa(sides*each) {
		t.Fatalf("the sum is %s, %v", row.Value, err)
	}
	if keys, err := s.List(ctx, "side.>"); err != nil || len(keys) != sides*each {
		t.Fatalf("%d rows beside it, %v", len(keys), err)
	}
}

func countUp(ctx context.Context, store *ledger.Store, own string) error {
	for {
		row, _, err := store.Get(ctx, "sum")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(row.Value))
		if err != nil {
			return err
		}
		_, err = store.Apply(ctx, ledger.Batch{Writes: []ledger.Write{
			ledger.Replace(row, []byte(strconv.Itoa(n+1))), ledger.Create(own, []byte("v"))}})
		if !errors.Is(err, ledger.ErrLost) {
			return err
		}
	}
}

// manyBatches opens more at once than a server takes.
func manyBatches(t *testing.T, ctx context.Context, s Subject) {
	const many = 120
	store := ledger.NewStore(s.Backend, ledger.DefaultPatience())
	var landing sync.WaitGroup
	for i := range many {
		landing.Go(func() {
			_, err := store.Apply(ctx, ledger.Batch{Writes: []ledger.Write{
				ledger.Create(fmt.Sprintf("a.%d", i), []byte("v")), ledger.Create(fmt.Sprintf("b.%d", i), []byte("v"))}})
			if err != nil {
				t.Errorf("batch %d: %v", i, err)
			}
		})
	}
	landing.Wait()
	if keys, err := s.List(ctx, ">"); err != nil || len(keys) != 2*many {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
}

func endedContext(t *testing.T, ctx context.Context, s Subject) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := s.Get(ended, "k"); !errors.Is(err, messages.BrokerAway) {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.List(ended, ">"); !errors.Is(err, messages.BrokerAway) {
		t.Errorf("List: %v", err)
	}
	if _, err := s.Send(ended, ledger.Batch{Writes: []ledger.Write{ledger.Create("k", []byte("v"))}}); err == nil {
		t.Error("Send is content")
	}
}

// land sends until it lands: a cluster may have no leader, or be busy, for a moment.
// Nobody else writes, so the first row is its own witness.
func land(t *testing.T, ctx context.Context, s Subject, writes ...ledger.Write) uint64 {
	t.Helper()
	last, err := ledger.NewStore(s.Backend, ledger.DefaultPatience()).Apply(ctx, ledger.Batch{Writes: writes, Witness: writes[0].Key})
	if err != nil {
		t.Fatalf("write %s: %v", writes[0].Key, err)
	}
	return last
}

func refuse(t *testing.T, ctx context.Context, s Subject, want error, writes ...ledger.Write) {
	t.Helper()
	for {
		_, err := s.Send(ctx, ledger.Batch{Writes: writes})
		if errors.Is(err, ledger.ErrContended) || errors.Is(err, ledger.ErrNotApplied) {
			continue // the write before is still under way on some replica
		}
		if !errors.Is(err, want) {
			t.Fatalf("write %s: got %v, want %v", writes[0].Key, err, want)
		}
		return
	}
}

func expect(t *testing.T, ctx context.Context, s Subject, key, value string, revision uint64) ledger.Row {
	t.Helper()
	row, found, err := s.Get(ctx, key)
	if err != nil || !found || row.Key != key || string(row.Value) != value || row.Revision != revision {
		t.Fatalf("%s: got %q at %d (%v, %v), want %q at %d", key, row.Value, row.Revision, found, err, value, revision)
	}
	return row
}
