package retirement

import (
	"testing"
	"time"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Whoever is coming is waited for until he has come, will not, or takes too long.
func TestWhoIsComing(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := newComing(func() time.Time { return now })
	if !isClosed(c.gathered()) {
		t.Error("nobody is coming, and is waited for")
	}
	if !c.add("a") || c.add("a") || !c.add("b") {
		t.Error("somebody is counted twice, or not at all")
	}
	all := c.gathered()
	c.over("a")
	c.over("nobody")
	if isClosed(all) {
		t.Error("b is not waited for")
	}
	now = now.Add(comingFor - time.Millisecond)
	c.add("c")
	now = now.Add(time.Millisecond) // b takes too long
	if isClosed(all) || isClosed(c.gathered()) {
		t.Error("c is not waited for")
	}
	c.over("c")
	if !isClosed(all) || !isClosed(c.gathered()) {
		t.Error("b is waited for")
	}
	if !c.add("b") || isClosed(c.gathered()) {
		t.Error("b comes anew, and is not waited for")
	}
	c.over("b")
	if !isClosed(c.gathered()) || len(c.since) > 0 {
		t.Errorf("left: %v", c.since)
	}
	var none *coming
	if none.add("a") || !isClosed(none.gathered()) {
		t.Error("nobody counts on anybody")
	}
	none.over("a")
}

// Who was denied in time is taken, in the order in which they came.
func TestTheLineIsTakenInOrder(t *testing.T) {
	var l line
	now := time.Unix(1_800_000_000, 0)
	for _, after := range []time.Duration{2, 0, 1} {
		l.add(errand{evictTarget: evictTarget{denied: now.Add(after)}})
	}
	taken := l.take(now.Add(1))
	if len(taken) != 2 || !taken[0].denied.Equal(now) || len(l.waiting) != 1 {
		t.Errorf("taken are %d, %d are left", len(taken), len(l.waiting))
	}
	if rest := l.take(time.Time{}); len(rest) != 1 || len(l.waiting) != 0 {
		t.Errorf("taken are %d, %d are left", len(rest), len(l.waiting))
	}
}
