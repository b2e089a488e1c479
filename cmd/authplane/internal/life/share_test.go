package life

import (
	"slices"
	"testing"
	"time"
)

// What the manager hears of several services, one step after the other.
func TestAManagerIsShared(t *testing.T) {
	const (
		ready, stopping, alive = "READY=1", "STOPPING=1", "WATCHDOG=1"
		patience               = "EXTEND_TIMEOUT_USEC=1"
	)
	type step struct {
		part int
		says string
		want []string // what is passed on
	}
	tests := map[string][]step{
		"one alone": {{0, patience, []string{patience}}, {0, ready, []string{ready}}, {0, alive, []string{alive}}, {0, alive, []string{alive}},
			{0, stopping, []string{stopping}}, {0, patience, []string{patience}}, {0, stopping, nil}},
		"ready when all are": {{0, ready, nil}, {0, alive, nil}, {1, patience, []string{patience}}, {1, ready, []string{ready}}},
		"one that never comes up": {{0, ready, nil}, {1, stopping, []string{ready}},
			{0, alive, []string{alive}}, {0, stopping, []string{stopping}}},
		"one that fails before the other is up": {{0, ready, nil}, {0, stopping, nil}, {1, ready, []string{ready}}},
		"one that fails": {{0, ready, nil}, {1, ready, []string{ready}}, {0, alive, nil}, {0, stopping, nil}, {0, patience, nil},
			{1, alive, []string{alive}}, {0, stopping, nil}, {1, alive, []string{alive}}, {1, stopping, []string{stopping}}, {1, patience, []string{patience}}},
		"one that hangs":  {{0, ready, nil}, {1, ready, []string{ready}}, {0, alive, nil}, {0, alive, nil}, {1, alive, []string{alive}}, {1, alive, nil}},
		"none comes up":   {{0, stopping, nil}, {1, stopping, []string{stopping}}},
		"asked meanwhile": {{0, ready, nil}, {0, stopping, nil}, {0, patience, []string{patience}}, {1, stopping, []string{stopping}}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			n := 1
			for _, s := range steps {
				n = max(n, s.part+1)
			}
			r := newRecorder()
			parts := r.manager(time.Hour).Share(n)
			var want []string
			for _, s := range steps {
				parts[s.part].tell(s.says)
				want = append(want, s.want...)
				if got := r.all(); !slices.Equal(got, want) {
					t.Fatalf("after %d said %s: told %q, want %q", s.part, s.says, got, want)
				}
			}
			if parts[0].every != time.Hour {
				t.Errorf("a sign of life every %s", parts[0].every)
			}
		})
	}
}
