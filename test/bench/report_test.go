package bench

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestSeries(t *testing.T) {
	s := Series{4, 1, 3, 2}
	for _, tc := range []struct {
		what      string
		got, want float64
	}{
		{"median of four", s.Median(), 2.5},
		{"median of three", Series{9, 1, 5}.Median(), 5},
		{"smallest", s.Min(), 1},
		{"largest", s.Max(), 4},
		{"half of them", s.Percentile(50), 2},
		{"nearly all", s.Percentile(99), 4},
		{"turn by turn", s.Over(Series{2, 2, 2, 2}).Max(), 2},
		{"what is left", s.Minus(Series{1, 1, 1, 1}).Min(), 0},
		{"in milliseconds", Milliseconds([]time.Duration{1500 * time.Microsecond}).Median(), 1.5},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %v, want %v", tc.what, tc.got, tc.want)
		}
	}
	if none := (Series{}); !math.IsNaN(none.Median()) || !math.IsNaN(none.Max()) {
		t.Error("nothing has a median")
	}
}

func TestReport(t *testing.T) {
	r := &Report{Title: "connects", How: "64 at once."}
	r.Figure("ready-made", Series{1600, 1700}, "/s", Bound{})
	r.Ratio("ratio", Series{0.5, 0.4, 0.51}, Bound{AtLeast: 0.45})
	r.Ratio("cost", One(1.4), Bound{AtMost: 1.3})
	r.Note("of %d", 3)
	want := `
── connects
   64 at once.
   ratio                                         0.50  (0.40 – 0.51, 3 turns)  at least 0.45: holds
   cost                                          1.40  at most 1.30: DOES NOT HOLD
   on this machine:
     ready-made                                    1650 /s  (1600 – 1700, 2 turns)
   of 3
`
	if got := r.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", strings.ReplaceAll(got, " ", "·"), strings.ReplaceAll(want, " ", "·"))
	}
}
