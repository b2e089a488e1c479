package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	. "github.com/cotal-ai/authplane/supervisor"
)

func dynamic(t *testing.T, kids ...Spec) (*Tree, *Subscription) {
	t.Helper()
	tree := start(t, group("root", Spec{Name: "g", Group: &Group{Dynamic: true, Children: kids}}, group("fixed")))
	sub := tree.Events(512)
	t.Cleanup(sub.Close)
	return tree, sub
}

func TestAddedChildLivesAndIsRemoved(t *testing.T) {
	tree, sub := dynamic(t)
	p := &probe{}
	r := must2(tree.Add(within(t), "g", p.spec("1")))
	if r.Path() != "g/1" || must2(Ask[int](within(t), r, 5)) != 5 {
		t.Fatal(r)
	}
	p.current().Fail(errBoom)
	next(t, sub, func(e Opened) bool { return e.Path == "g/1" && e.Generation == 2 })
	if must2(Ask[uint64](within(t), r, "who")) != 2 {
		t.Fatal("it was not restarted")
	}
	if _, err := tree.Add(within(t), "g", plain("1", nil)); !errors.Is(err, ErrExists) {
		t.Fatal(err)
	}
	if err := tree.Remove(within(t), "g/1"); err != nil {
		t.Fatal(err)
	}
	if _, err := Ask[int](within(t), r, 5); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	if _, ok := tree.Ref("g/1"); ok {
		t.Fatal("still there")
	}
	// The same place again: the ref serves again, and generations go on.
	must2(tree.Add(within(t), "g", p.spec("1")))
	if got := must2(Ask[uint64](within(t), r, "who")); got != 3 {
		t.Fatalf("generation %d", got)
	}
}

func TestAddAndRemoveRefuse(t *testing.T) {
	tree, _ := dynamic(t, plain("static", nil))
	for path, want := range map[string]error{"none": ErrNoSuchActor, "fixed": ErrNotApplicable, "g/static": ErrNotApplicable} {
		if _, err := tree.Add(within(t), path, plain("x", nil)); !errors.Is(err, want) {
			t.Errorf("add to %s: %v", path, err)
		}
	}
	if _, err := tree.Add(within(t), "g", Spec{Name: "x"}); !errors.Is(err, ErrSpec) {
		t.Error(err)
	}
	for path, want := range map[string]error{"none": ErrNoSuchActor, "g/static": ErrNotApplicable, "g": ErrNotApplicable} {
		if err := tree.Remove(within(t), path); !errors.Is(err, want) {
			t.Errorf("remove %s: %v", path, err)
		}
	}
	p := &probe{open: func(l *Life) { l.Fail(errBoom) }}
	if _, err := tree.Add(within(t), "g", p.spec("bad")); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	must2(tree.Add(within(t), "g", plain("bad", nil))) // nothing was left of it
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Add(within(t), "g", plain("y", nil)); !errors.Is(err, ErrClosing) {
		t.Fatal(err)
	}
}

func TestRemoveMayBeRefusedAndRetried(t *testing.T) {
	tree, _ := dynamic(t)
	p := &probe{close: func(l *Life, c *Close) {
		if c.Why != Removing {
			t.Errorf("why %s", c.Why)
		}
		l.ClosedWith(errBoom)
	}}
	must2(tree.Add(within(t), "g", p.spec("1")))
	if err := tree.Remove(within(t), "g/1"); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	p.close = nil
	if err := tree.Remove(within(t), "g/1"); err != nil {
		t.Fatal(err)
	}
}

func TestTemporaryChildIsRemovedWithItsEnd(t *testing.T) {
	tree, sub := dynamic(t)
	for i, end := range []func(*Life){
		func(l *Life) { l.ClosedWith(nil) },
		func(l *Life) { l.Fail(errBoom) },
		func(*Life) { must2(tree.Kill("g/2", Panic)) },
	} {
		path := fmt.Sprint("g/", i)
		p := &probe{}
		s := p.spec(fmt.Sprint(i))
		s.Restart = Never
		must2(tree.Add(within(t), "g", s))
		end(p.current())
		next(t, sub, at[Removed](path))
		if _, err := tree.Kill(path, Stop); !errors.Is(err, ErrNoSuchActor) {
			t.Fatal(err)
		}
	}
}

func TestAddedGroup(t *testing.T) {
	tree, sub := dynamic(t)
	j := &journal{}
	p := &probe{journal: j}
	must2(tree.Add(within(t), "g", Spec{Name: "op", Group: &Group{Dynamic: true, Children: []Spec{p.spec("a"), plain("b", j)}}}))
	must2(tree.Add(within(t), "g/op", plain("c", j)))
	j.want(t, "open g/op/a", "open g/op/b", "open g/op/c")
	p.current().Fail(errBoom)
	next(t, sub, func(e Opened) bool { return e.Path == "g/op/a" && e.Generation == 2 })
	j.take()
	if err := tree.Remove(within(t), "g/op"); err != nil {
		t.Fatal(err)
	}
	j.want(t, "close g/op/c", "close g/op/b", "close g/op/a")
	if _, ok := tree.Ref("g/op/a"); ok {
		t.Fatal("still there")
	}
}

func TestAddFromALife(t *testing.T) {
	p := &probe{}
	tree, _ := dynamic(t, p.spec("boss"))
	p.receive = func(l *Life, c actor.Context) {
		if _, ok := c.Message().(string); !ok {
			return
		}
		to := c.Sender()
		l.Go("add", func(ctx context.Context) {
			if _, err := l.Add(ctx, "g", plain("hand", nil)); err != nil {
				l.Reply(to, err)
				return
			}
			l.Reply(to, l.Remove(ctx, "g/hand") == nil)
		})
	}
	if ok, err := Ask[bool](within(t), ref(t, tree, "g/boss"), "go"); err != nil || !ok {
		t.Fatal(ok, err)
	}
}

func TestCloseWhileAChildIsBeingAdded(t *testing.T) {
	tree, _ := dynamic(t)
	asked := make(chan struct{})
	p := &probe{open: func(*Life) { close(asked) }}
	done := make(chan error, 1)
	go func() { _, err := tree.Add(within(t), "g", p.spec("slow")); done <- err }()
	wait(t, asked, "the child to open")
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrClosing) {
		t.Fatal(err)
	}
	wait(t, tree.Closed(), "the tree to be closed")
}

// Thousands of temporary children leave nothing behind but a bounded number of
// tombstones.
func TestManyTemporaryChildren(t *testing.T) {
	system := newSystem()
	tree := must2(Start(within(t), system, Spec{Name: "root", Group: &Group{Dynamic: true}}))
	defer func() { _ = tree.Close(within(t)) }()
	count := func() (n int) {
		for _, b := range system.ProcessRegistry.LocalPIDs.LocalPIDs {
			n += b.Count()
		}
		return n
	}
	before := count()
	total := 1500
	for i := range total {
		s := plain(fmt.Sprint("c", i), nil)
		s.Restart = Never
		must2(tree.Add(within(t), "root", s))
		if err := tree.Remove(within(t), fmt.Sprint("c", i)); err != nil {
			t.Fatal(err)
		}
	}
	if left := count() - before; left > 1024 || left < 1000 {
		t.Fatalf("%d processes are left", left)
	}
	if n := len(tree.Snapshot()); n != 1 {
		t.Fatalf("%d nodes", n)
	}
}
