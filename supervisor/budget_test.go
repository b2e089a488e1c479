package supervisor_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/cotal-ai/authplane/supervisor"
)

// TestDefaultBudget has twenty deaths within half a minute be the end, and nineteen not,
// by whatever else was survived before.
func TestDefaultBudget(t *testing.T) {
	clock := newClock()
	cfg := DefaultRestart()
	p := &probe{}
	tree := start(t, group("root", p.spec("a")), WithClock(clock), WithRestart(cfg), WithRandom(func() float64 { return 0 }))
	sub := tree.Events(256)
	defer sub.Close()
	const most = 19
	for range 2 {
		for range most {
			p.current().Fail(errBoom)
			next(t, sub, at[Opened]("a"))
		}
		clock.advance(30 * time.Second)
	}
	for range most {
		p.current().Fail(errBoom)
		next(t, sub, at[Opened]("a"))
	}
	select {
	case <-tree.Failed():
		t.Fatal("failed too early")
	default:
	}
	clock.advance(30*time.Second - 1)
	p.current().Fail(errBoom)
	wait(t, tree.Failed(), "the tree to fail")
	if err := tree.Err(); !errors.Is(err, ErrExhausted) {
		t.Fatal(err)
	}
}
