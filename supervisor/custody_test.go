package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/cotal-ai/authplane/supervisor"
)

// stuck is a resource that does not end when it is severed.
type stuck struct{ *wire }

func (stuck) Sever() {}

type rude struct{ *wire }

func (r rude) Sever() { r.wire.Sever(); panic("rude") }

func TestResourcesOfALifeEndWithIt(t *testing.T) {
	w1, w2 := newWire("w1"), newWire("w2")
	p := &probe{open: func(l *Life) {
		if l.Generation() == 1 {
			_ = l.Hold(w1)
			_ = l.Hold(rude{w2})
		}
		l.Opened()
	}}
	tree := start(t, group("root", p.spec("a")))
	sub := tree.Events(64)
	defer sub.Close()
	if n := node(t, tree, "a"); n.Label != "w2" {
		t.Fatalf("%+v", n)
	}
	if h := tree.Custody().Open(); len(h) != 2 || h[0].Label != "w1" || h[0].Path != "a" || h[0].Generation != 1 {
		t.Fatalf("%+v", h)
	}
	p.current().Fail(errBoom)
	next(t, sub, at[Opened]("a"))
	wait(t, w1.Ended(), "w1")
	wait(t, w2.Ended(), "w2")
	eventually(t, func() bool { return tree.Custody().Counts()["w1"].Ended == 1 })
	for _, h := range tree.Custody().Holdings() {
		if !h.Ended || h.EndedAt.IsZero() {
			t.Errorf("%+v", h)
		}
	}
	if c := tree.Custody().Counts()["w1"]; c != (Count{Held: 1, Ended: 1}) {
		t.Errorf("%+v", c)
	}
}

func TestClosedFiresOnlyWhenEveryResourceHasEnded(t *testing.T) {
	w := newWire("late")
	own := newWire("own")
	p := &probe{open: func(l *Life) { _ = l.Hold(stuck{w}); l.Opened() }}
	clock := newClock()
	tree := start(t, group("root", p.spec("a")), WithClock(clock))
	if err := tree.Custody().Hold(own); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- tree.Close(ctx) }()
	clock.timer(t, time.Second) // the life waits a moment for what it severed
	clock.advance(time.Second)
	wait(t, own.Ended(), "what belongs to no life to be severed at the end")
	eventually(t, func() bool { return node(t, tree, "root").State == StateClosed })
	cancel()
	err := <-done
	if f := Leaves(err); len(f) != 1 || f[0].Label != "late" || f[0].Path != "a" || !errors.Is(err, ErrStillRunning) {
		t.Fatalf("%v", err)
	}
	select {
	case <-tree.Closed():
		t.Fatal("closed although a connection is open")
	default:
	}
	if err := tree.Custody().Hold(newWire("x")); err != nil && !errors.Is(err, ErrClosing) {
		t.Fatal(err)
	}
	w.Sever()
	wait(t, tree.Closed(), "the tree to be closed")
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsHeldAfterTheEnd(t *testing.T) {
	tree := start(t, group("root", plain("a", nil)))
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	w := newWire("x")
	if err := tree.Custody().Hold(w); !errors.Is(err, ErrClosing) {
		t.Fatal(err)
	}
	wait(t, w.Ended(), "what was refused to be severed")
}

func TestCustodyIsBounded(t *testing.T) {
	p := &probe{}
	tree := start(t, group("root", p.spec("a")))
	for i := range 3000 {
		w := newWire(fmt.Sprint("l", i))
		if err := p.current().Hold(w); err != nil {
			t.Fatal(err)
		}
		w.Sever()
	}
	eventually(t, func() bool {
		var ended uint64
		for _, c := range tree.Custody().Counts() {
			ended += c.Ended
		}
		return ended == 3000
	})
	if n := len(tree.Custody().Holdings()); n != 256 {
		t.Errorf("%d holdings are remembered", n)
	}
	counts := tree.Custody().Counts()
	if len(counts) > 1025 || counts[OtherLabels].Held == 0 {
		t.Errorf("%d labels", len(counts))
	}
	var sum uint64
	for _, c := range counts {
		sum += c.Held
		if c.Held != c.Ended {
			t.Error("not all ended")
		}
	}
	if sum != 3000 {
		t.Errorf("%d counted", sum)
	}
}

func TestDisconnect(t *testing.T) {
	w := newWire("w")
	p := &probe{open: func(l *Life) {
		if l.Generation() == 1 {
			_ = l.Hold(w)
			l.Go("watch", func(ctx context.Context) {
				select {
				case <-w.Ended():
					l.Fail(Outage(errBoom))
				case <-ctx.Done():
				}
			})
		}
		l.Opened()
	}}
	tree := start(t, group("root", p.spec("a"), plain("b", nil)))
	sub := tree.Events(64)
	defer sub.Close()
	k := must2(tree.Kill("a", Disconnect))
	if k != (Killed{Path: "a", Generation: 1}) {
		t.Fatal(k)
	}
	next(t, sub, at[Opened]("a"))
	for path, want := range map[string]error{"a": ErrNotApplicable, "b": ErrNotApplicable, "root": ErrNotApplicable, "no": ErrNoSuchActor} {
		if _, err := tree.Kill(path, Disconnect); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := tree.Kill("root", Panic); !errors.Is(err, ErrNotApplicable) {
		t.Error(err)
	}
	if _, err := tree.Kill("a", How(9)); !errors.Is(err, ErrNotApplicable) {
		t.Error(err)
	}
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Kill("a", Panic); !errors.Is(err, ErrNotApplicable) {
		t.Error(err)
	}
}
