package contract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Scannable is a backend under test whose rows can be enumerated.
type Scannable struct {
	Subject
	ledger.Scanner
	ledger.Marker
}

// Scanner runs the contract of ledger.Scanner and ledger.Marker. open gives a new
// and empty one.
func Scanner(t *testing.T, open func(t *testing.T) Scannable) {
	cases := []struct {
		name string
		run  func(*testing.T, context.Context, Scannable)
	}{
		{"nothing", scanNothing}, {"exactly what matches", scanMatching}, {"as it stands last", scanLast}, {"many rows", scanMany},
		{"milestones", scanMilestones}, {"a milestone that never comes", scanMissing}, {"markers", scanMarkers},
		{"many scans at once", scanAtOnce}, {"ended context", scanEnded},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c.run(t, ctx, open(t))
		})
	}
}

func scanNothing(t *testing.T, ctx context.Context, s Scannable) {
	scans(t, ctx, s, ledger.Scan{Filter: "cred.x.*"})
	land(t, ctx, s.Subject, ledger.Create("head.u.p", []byte("h")))
	scans(t, ctx, s, ledger.Scan{Filter: "cred.x.*"})
}

func scanMatching(t *testing.T, ctx context.Context, s Scannable) {
	for _, key := range []string{"cred.x.b", "cred.x.a", "cred.y.a", "cred.x", "cred.x.a.b", "icred.x.a"} {
		land(t, ctx, s.Subject, ledger.Create(key, []byte("of "+key)))
	}
	scans(t, ctx, s, ledger.Scan{Filter: "cred.x.*"}, "cred.x.a", "cred.x.b")
	scans(t, ctx, s, ledger.Scan{Filter: "cred.x.>"}, "cred.x.a", "cred.x.a.b", "cred.x.b")
	scans(t, ctx, s, ledger.Scan{Filter: "cred.x"}, "cred.x")
	scans(t, ctx, s, ledger.Scan{Filter: ">"}, "cred.x", "cred.x.a", "cred.x.a.b", "cred.x.b", "cred.y.a", "icred.x.a")
}

func scanLast(t *testing.T, ctx context.Context, s Scannable) {
	row := ledger.Row{Key: "k.a"}
	for i := range 3 {
		row.Revision = land(t, ctx, s.Subject, ledger.Replace(row, []byte(strconv.Itoa(i))))
		row.Value = []byte(strconv.Itoa(i))
	}
	if rows, err := s.Scan(ctx, ledger.Scan{Filter: "k.*"}); err != nil || !reflect.DeepEqual(rows, []ledger.Row{row}) {
		t.Fatalf("got %v, %v", rows, err)
	}
}

func scanMany(t *testing.T, ctx context.Context, s Scannable) {
	var want []string
	for batch := range 3 {
		var writes []ledger.Write
		for i := range 500 {
			key := fmt.Sprintf("k.%d.%03d", batch, i)
			writes = append(writes, ledger.Create(key, bytes.Repeat([]byte("x"), 100)))
			want = append(want, key)
		}
		land(t, ctx, s.Subject, writes...)
	}
	scans(t, ctx, s, ledger.Scan{Filter: "k.>"}, want...)
}

func scanMilestones(t *testing.T, ctx context.Context, s Scannable) {
	land(t, ctx, s.Subject, ledger.Create("k.a", []byte("v")))
	frozen := land(t, ctx, s.Subject, ledger.Create("head.u.p", []byte("h")))
	for _, m := range []ledger.Milestone{{Key: "head.u.p", Revision: frozen}, {Key: "head.u.p", Revision: frozen - 1}, {Key: "k.a", Revision: 1}} {
		scans(t, ctx, s, ledger.Scan{Filter: "k.*", Milestone: m}, "k.a")
	}
	left, err := s.Milestone(ctx)
	if err != nil || left.Revision <= frozen {
		t.Fatalf("left %+v, %v", left, err)
	}
	scans(t, ctx, s, ledger.Scan{Filter: "k.*", Milestone: left}, "k.a")
	again, err := s.Milestone(ctx)
	if err != nil || again.Revision <= left.Revision {
		t.Fatalf("left %+v after %+v, %v", again, left, err)
	}
	scans(t, ctx, s, ledger.Scan{Filter: "k.*", Milestone: left}, "k.a")
}

func scanMissing(t *testing.T, ctx context.Context, s Scannable) {
	at := land(t, ctx, s.Subject, ledger.Create("k.a", []byte("v")))
	var scanning sync.WaitGroup
	for _, m := range []ledger.Milestone{{Key: "k.a", Revision: at + 1}, {Key: "head.u.p", Revision: at}} {
		scanning.Go(func() {
			if rows, err := s.Scan(ctx, ledger.Scan{Filter: "k.*", Milestone: m}); !errors.Is(err, messages.ScanIncomplete) || rows != nil {
				t.Errorf("%+v: got %v, %v", m, rows, err)
			}
		})
	}
	scanning.Wait()
}

func scanMarkers(t *testing.T, ctx context.Context, s Scannable) {
	land(t, ctx, s.Subject, ledger.Create("k.a", []byte("v")))
	s.Mark(t, "k.b")
	if rows, err := s.Scan(ctx, ledger.Scan{Filter: "k.*"}); !errors.Is(err, messages.RowCorrupt) || rows != nil {
		t.Errorf("got %v, %v", rows, err)
	}
	scans(t, ctx, s, ledger.Scan{Filter: "k.a"}, "k.a")
}

func scanAtOnce(t *testing.T, ctx context.Context, s Scannable) {
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprintf("k.%02d", i))
		land(t, ctx, s.Subject, ledger.Create(want[i], []byte("v")))
	}
	var scanning sync.WaitGroup
	for range 12 { // more than there are lanes
		scanning.Go(func() { scans(t, ctx, s, ledger.Scan{Filter: "k.*"}, want...) })
	}
	scanning.Wait()
}

func scanEnded(t *testing.T, ctx context.Context, s Scannable) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if rows, err := s.Scan(ended, ledger.Scan{Filter: ">"}); err == nil || !messages.Describe(err).Retryable || rows != nil {
		t.Errorf("got %v, %v", rows, err)
	}
}

func scans(t *testing.T, ctx context.Context, s Scannable, ask ledger.Scan, want ...string) {
	t.Helper()
	rows, err := s.Scan(ctx, ask)
	if err != nil {
		t.Errorf("%+v: %v", ask, err)
		return
	}
	var got []string
	for _, row := range rows {
		got = append(got, row.Key)
		if len(row.Value) == 0 || row.Revision == 0 {
			t.Errorf("%s is %q at %d", row.Key, row.Value, row.Revision)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v: got %d rows %.200s, want %d", ask, len(got), fmt.Sprint(got), len(want))
	}
}
