package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	. "github.com/cotal-ai/authplane/supervisor"
)

// All ways to die are one: the life ends, the next one begins, and who was waiting
// for an answer gets one.
func TestWaysToDie(t *testing.T) {
	hung := func(*Life, actor.Context) {}
	ways := map[string]func(*Tree, *Life){
		"fail":          func(_ *Tree, l *Life) { l.Fail(errBoom) },
		"fail with nil": func(_ *Tree, l *Life) { l.Fail(nil) },
		"fail twice":    func(_ *Tree, l *Life) { l.Fail(errBoom); l.Fail(errors.New("second")) },
		"panic in task": func(_ *Tree, l *Life) { l.Go("t", func(context.Context) { panic(errBoom) }) },
		"panic":         func(tree *Tree, _ *Life) { _ = Tell(must3(tree.Ref("a")), boom{}) },
		"kill panic":    func(tree *Tree, _ *Life) { must2(tree.Kill("a", Panic)) },
		"kill stop":     func(tree *Tree, _ *Life) { must2(tree.Kill("a", Stop)) },
		"closed":        func(_ *Tree, l *Life) { l.ClosedWith(nil) },
		"closed with":   func(_ *Tree, l *Life) { l.ClosedWith(errBoom) },
	}
	for name, die := range ways {
		t.Run(name, func(t *testing.T) {
			p := &probe{}
			p.receive = func(l *Life, c actor.Context) {
				switch c.Message().(type) {
				case boom:
					panic(errBoom)
				case string:
					c.Respond(l.Generation())
				default:
					hung(l, c)
				}
			}
			tree := start(t, group("root", p.spec("a"), plain("b", nil)))
			sub := tree.Events(64)
			defer sub.Close()
			old := p.current()
			waiting := make(chan error, 1)
			go func() { _, err := Ask[int](within(t), ref(t, tree, "a"), 1); waiting <- err }()
			eventually(t, func() bool { return node(t, tree, "a").InFlight == 1 })
			die(tree, old)
			if err := <-waiting; !errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the one who waited got %v", err)
			}
			died := next(t, sub, at[Died]("a"))
			if died.Generation != 1 || died.Cause == nil {
				t.Errorf("%v", died)
			}
			next(t, sub, at[Opened]("a"))
			if got := must2(Ask[uint64](within(t), ref(t, tree, "a"), "who")); got != 2 {
				t.Errorf("generation %d answers", got)
			}
			select {
			case <-old.Context().Done():
			default:
				t.Error("the context of the old life lives")
			}
			if n := node(t, tree, "b"); n.Generation != 1 {
				t.Error("a sibling was restarted")
			}
			if n := node(t, tree, "a"); n.Restarts != 1 || n.LastError == nil {
				t.Errorf("%+v", n)
			}
		})
	}
}

func must3(r Ref, _ bool) Ref { return r }

func TestStopAndPoisonFromOutside(t *testing.T) {
	for name, end := range map[string]func(*actor.ActorSystem, *actor.PID){
		"stop":   func(s *actor.ActorSystem, pid *actor.PID) { s.Root.Stop(pid) },
		"poison": func(s *actor.ActorSystem, pid *actor.PID) { s.Root.Poison(pid) },
	} {
		t.Run(name, func(t *testing.T) {
			system := newSystem()
			p := &probe{}
			tree := must2(Start(within(t), system, group("root", p.spec("a"))))
			defer func() { _ = tree.Close(within(t)) }()
			for i := range 3 {
				sub := tree.Events(16)
				pid := ref(t, tree, "a").PID()
				if i == 2 { // the address of one life alone
					got := make(chan *actor.PID, 1)
					p.receive = func(_ *Life, c actor.Context) {
						if _, ok := c.Message().(string); ok {
							got <- c.Self()
						}
					}
					_ = Tell(ref(t, tree, "a"), "self")
					pid = <-got
				}
				end(system, pid)
				if e := next(t, sub, at[Died]("a")); !errors.Is(e.Cause, ErrStopped) {
					t.Fatal(e)
				}
				next(t, sub, at[Opened]("a"))
				sub.Close()
			}
		})
	}
}

// Nothing of a life is left when the next one begins.
func TestOldStopEndsBeforeNewStartBegins(t *testing.T) {
	j := &journal{}
	release := make(chan struct{})
	w := newWire("w")
	p := &probe{journal: j}
	p.open = func(l *Life) {
		if l.Generation() == 1 {
			_ = l.Hold(w)
			l.Go("slow", func(ctx context.Context) {
				<-ctx.Done()
				<-release
				j.add("task ended")
			})
		}
		l.Opened()
	}
	p.receive = func(l *Life, c actor.Context) {
		if _, ok := c.Message().(*actor.Stopped); ok {
			j.add("stopped %d", l.Generation())
		}
	}
	clock := newClock()
	tree := start(t, group("root", p.spec("a")), WithClock(clock))
	sub := tree.Events(64)
	defer sub.Close()
	j.take()
	p.current().Fail(errBoom)
	next(t, sub, at[Died]("a"))
	wait(t, w.Ended(), "the resource to be severed")
	clock.timer(t, DefaultCloseWithin)
	eventually(t, func() bool { return len(node(t, tree, "a").Running) == 1 })
	clock.advance(DefaultCloseWithin)
	if e := next(t, sub, at[StillRunning]("a")); !slices.Equal(e.What, []string{"task slow"}) {
		t.Fatal(e)
	}
	if _, err := Ask[int](within(t), ref(t, tree, "a"), 1); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	j.want(t, "stopped 1")
	close(release)
	next(t, sub, at[Opened]("a"))
	j.want(t, "task ended", "open a")
}

func TestLateEventsOfAnEarlierLifeAreIgnored(t *testing.T) {
	got := make(chan any, 16)
	p := &probe{}
	p.receive = func(l *Life, c actor.Context) {
		switch m := c.Message().(type) {
		case int, string:
			got <- m
			c.Respond(m)
		}
	}
	tree := start(t, group("root", p.spec("a")))
	sub := tree.Events(64)
	defer sub.Close()
	old := p.current()
	old.Fail(errBoom)
	next(t, sub, at[Opened]("a"))
	old.Tell("late")
	old.Fail(errors.New("late"))
	old.Fence(errors.New("late"))
	old.Opened()
	old.Drained(nil)
	old.ClosedWith(nil)
	old.Go("late", func(context.Context) { got <- "task" })
	if must2(Ask[int](within(t), old.Self(), 1)) != 1 {
		t.Fatal("no answer")
	}
	if v := <-got; v != 1 || len(got) != 0 {
		t.Fatalf("%v arrived", v)
	}
	if n := node(t, tree, "a"); n.Generation != 2 {
		t.Fatalf("%+v", n)
	}
	if err := old.Hold(newWire("late")); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("a life that is over holds: %v", err)
	}
}

// The first restart is at once, then 50 ms doubling to 2 s; after 5 s of being well
// it begins anew. Jitter is drawn evenly below that.
func TestBackoff(t *testing.T) {
	clock := newClock()
	share := 1.0
	cfg := DefaultRestart()
	cfg.Limit = 0
	p := &probe{}
	tree := start(t, group("root", p.spec("a")), WithClock(clock), WithRestart(cfg), WithRandom(func() float64 { return share }))
	sub := tree.Events(256)
	defer sub.Close()
	die := func(want time.Duration) {
		t.Helper()
		p.current().Fail(errBoom)
		if e := next(t, sub, at[Restarting]("a")); e.In != want {
			t.Fatalf("restarts in %s, want %s", e.In, want)
		}
		if want > 0 {
			clock.timer(t, want)
			clock.advance(want - 1)
			if n := node(t, tree, "a"); n.State != StateRestarting {
				t.Fatalf("%+v", n)
			}
			clock.advance(1)
		}
		next(t, sub, at[Opened]("a"))
	}
	ms := time.Millisecond
	for _, d := range []time.Duration{0, 50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 2000 * ms, 2000 * ms} {
		die(d)
	}
	clock.advance(5*time.Second - 1)
	die(2000 * ms)
	clock.advance(5 * time.Second)
	die(0)
	share = 0.5
	die(25 * ms)
	die(50 * ms)
}

func TestBudget(t *testing.T) {
	clock := newClock()
	cfg := RestartConfig{Limit: 3, Window: time.Minute, ResetAfter: time.Hour}
	p := &probe{}
	tree := start(t, group("root", p.spec("a"), plain("b", nil)), WithClock(clock), WithRestart(cfg))
	sub := tree.Events(256)
	defer sub.Close()
	die := func(err error) { t.Helper(); p.current().Fail(err); next(t, sub, at[Opened]("a")) }
	die(errBoom)
	die(errBoom)
	clock.advance(time.Minute) // both fall out of the window
	die(errBoom)
	for range 10 {
		die(Outage(errBoom)) // does not count
	}
	die(errBoom)
	select {
	case <-tree.Failed():
		t.Fatal("failed too early")
	default:
	}
	p.current().Fail(errBoom)
	wait(t, tree.Failed(), "the tree to fail")
	if err := tree.Err(); !errors.Is(err, ErrExhausted) || !errors.Is(err, errBoom) || Leaves(err)[0].Path != "a" {
		t.Fatal(err)
	}
	if tree.State() != StateFailed || !errors.Is(tree.Cause(), ErrExhausted) {
		t.Fatal(tree.State(), tree.Cause())
	}
	if n := node(t, tree, "a"); n.State != StateFailed {
		t.Fatalf("%+v", n)
	}
	// What is open goes on working until the owner closes the tree.
	must2(Ask[int](within(t), ref(t, tree, "b"), 1))
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestFailedRestartCountsAsADeath(t *testing.T) {
	p := &probe{}
	tree := start(t, group("root", p.spec("a")), WithRestart(RestartConfig{Limit: 4, Window: time.Minute}))
	p.open = func(l *Life) { l.Fail(errBoom) }
	p.current().Fail(errBoom)
	wait(t, tree.Failed(), "the tree to fail")
	if n := node(t, tree, "a"); n.Generation != 4 {
		t.Fatalf("%+v", n)
	}
}

func TestRest(t *testing.T) {
	j := &journal{}
	b := &probe{journal: j}
	s := b.spec("b")
	s.Restart = Rest
	tree := start(t, group("root", plain("a", j), s, plain("c", j), group("g", plain("d", j))))
	sub := tree.Events(64)
	defer sub.Close()
	j.take()
	for range 3 {
		b.current().Fail(errBoom)
		next(t, sub, at[Opened]("g"))
		j.want(t, "close g/d", "close c", "open b", "open c", "open g/d")
	}
	if n := node(t, tree, "a"); n.Generation != 1 {
		t.Fatal("what was opened before was restarted")
	}
}

// What dies while the rest reopens, and what does not open then, is tried again
// within the budget.
func TestDeathsWhileTheRestReopens(t *testing.T) {
	j := &journal{}
	a, b, c := &probe{journal: j}, &probe{journal: j}, &probe{journal: j}
	rest := func(p *probe, name string) Spec { s := p.spec(name); s.Restart = Rest; return s }
	tree := start(t, group("root", rest(a, "a"), rest(b, "b"), rest(c, "c")))
	sub := tree.Events(128)
	defer sub.Close()
	j.take()
	n := 0
	c.open = func(l *Life) {
		switch n++; n {
		case 1:
			l.Fail(errBoom) // does not open
		case 2:
			a.current().Fail(errBoom) // an earlier one dies while it opens
		default:
			l.Opened()
		}
	}
	a.current().Fail(errBoom)
	next(t, sub, at[Opened]("c"))
	j.want(t, "close c", "close b", "open a", "open b", "open c", "open c", "close b", "open a", "open b", "open c")
	must2(Ask[int](within(t), ref(t, tree, "c"), 1))
}

func TestEscalate(t *testing.T) {
	j := &journal{}
	p := &probe{journal: j}
	s := p.spec("x")
	s.Restart = Escalate
	refuse := &probe{journal: j, close: func(l *Life, _ *Close) { l.ClosedWith(errBoom) }}
	tree := start(t, group("root", plain("a", j), group("g", refuse.spec("w"), s, plain("y", j))))
	sub := tree.Events(64)
	defer sub.Close()
	j.take()
	p.current().Fail(errors.New("cause"))
	next(t, sub, at[Failed]("g"))
	e := next(t, sub, at[Died]("g"))
	if len(Leaves(e.Cause)) != 2 || !errors.Is(e.Cause, errBoom) {
		t.Fatalf("the unwinding is not reported: %v", e.Cause)
	}
	next(t, sub, at[Opened]("g"))
	j.want(t, "close g/y", "close g/w", "open g/w", "open g/x", "open g/y")
	if n := node(t, tree, "g"); n.Generation != 2 || n.Restarts != 1 || n.State != StateOpen {
		t.Fatalf("%+v", n)
	}
	if n := node(t, tree, "a"); n.Generation != 1 {
		t.Fatal("a sibling of the group was restarted")
	}
	refuse.close = nil
}

func TestEscalationOfAnOutageIsAnOutage(t *testing.T) {
	p := &probe{}
	s := p.spec("x")
	s.Restart = Escalate
	tree := start(t, group("root", group("g", s)), WithRestart(RestartConfig{Limit: 2, Window: time.Hour}))
	sub := tree.Events(64)
	defer sub.Close()
	for range 5 {
		p.current().Fail(Outage(errBoom))
		next(t, sub, at[Opened]("g"))
	}
	if err := tree.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestExhaustedGroupFailsUpwardAndIsRestartedWithAFreshBudget(t *testing.T) {
	p := &probe{}
	tree := start(t, group("root", group("g", p.spec("a"))), WithRestart(RestartConfig{Limit: 3, Window: time.Hour}))
	sub := tree.Events(256)
	defer sub.Close()
	for range 2 {
		for range 2 {
			p.current().Fail(errBoom)
			next(t, sub, at[Opened]("g/a"))
		}
		p.current().Fail(errBoom)
		next(t, sub, at[Opened]("g"))
	}
	for range 2 {
		p.current().Fail(errBoom)
		next(t, sub, at[Opened]("g/a"))
	}
	p.current().Fail(errBoom)
	wait(t, tree.Failed(), "the third failure of g to be one too many")
}

func TestRootEscalation(t *testing.T) {
	p := &probe{}
	s := p.spec("a")
	s.Restart = Escalate
	tree := start(t, group("root", s, plain("b", nil)))
	p.current().Fail(errBoom)
	wait(t, tree.Failed(), "the tree to fail")
	if !errors.Is(tree.Err(), errBoom) {
		t.Fatal(tree.Err())
	}
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestNever(t *testing.T) {
	p := &probe{}
	s := p.spec("a")
	s.Restart = Never
	tree := start(t, group("root", s, plain("b", nil)))
	sub := tree.Events(64)
	defer sub.Close()
	p.current().ClosedWith(nil)
	if e := next(t, sub, at[Closed]("a")); e.Err != nil {
		t.Fatal(e)
	}
	eventually(t, func() bool { return node(t, tree, "a").State == StateClosed })
	if _, err := Ask[int](within(t), ref(t, tree, "a"), 1); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
}
