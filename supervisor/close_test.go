package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	. "github.com/cotal-ai/authplane/supervisor"
)

func staged(stages []Stage, kids ...Spec) Spec {
	return Spec{Name: "root", Group: &Group{Children: kids, Stages: stages}}
}

// Two members that wait for each other close only because they do so concurrently,
// and the next stage begins only when both have.
func TestMembersOfAStageCloseConcurrently(t *testing.T) {
	j := &journal{}
	inA, inB := make(chan struct{}), make(chan struct{})
	meet := func(mine, other chan struct{}) func(*Life, *Close) {
		return func(l *Life, _ *Close) {
			close(mine)
			l.Go("meet", func(context.Context) { <-other; j.add("met %s", l.Path()); l.ClosedWith(nil) })
		}
	}
	tree := start(t, staged(
		[]Stage{{Name: "both", Close: []string{"a", "b"}}, {Name: "last", Close: []string{"c"}}},
		(&probe{close: meet(inA, inB)}).spec("a"), (&probe{close: meet(inB, inA)}).spec("b"), plain("c", j)))
	j.take()
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	got := j.take()
	if len(got) != 3 || got[2] != "close c" {
		t.Fatalf("%q", got)
	}
}

func TestDrainComesBeforeCloseAndLeavesTheActorWorking(t *testing.T) {
	j := &journal{}
	var answer error
	worker := &probe{journal: j}
	other := &probe{journal: j, close: func(l *Life, _ *Close) {
		l.Go("ask", func(ctx context.Context) { _, answer = Ask[int](ctx, l.Ref("worker"), 1); l.ClosedWith(nil) })
	}}
	tree := start(t, staged([]Stage{
		{Name: "1", Drain: []string{"worker"}, Close: []string{"other"}},
		{Name: "2", Drain: []string{"both"}, Close: []string{"both", "worker"}},
	}, worker.spec("worker"), other.spec("other"), plain("both", j)))
	j.take()
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if answer != nil {
		t.Errorf("a draining actor does not answer: %v", answer)
	}
	got := j.take()
	slices.Sort(got[:2])
	if !slices.Equal(got[:2], []string{"close other", "drain worker"}) {
		t.Errorf("first stage: %q", got)
	}
	if slices.Index(got, "drain both") > slices.Index(got, "close both") {
		t.Errorf("closed before it drained: %q", got)
	}
}

func TestErrorTreeOfAClose(t *testing.T) {
	refuse := func(err error) *probe { return &probe{close: func(l *Life, _ *Close) { l.ClosedWith(Terminal(err)) }} }
	e1, e2, e3 := errors.New("one"), errors.New("two"), errors.New("three")
	inner := refuse(e1).spec("x")
	inner.Label = "wire-x"
	undrained := &probe{drain: func(l *Life) { l.Drained(e3) }}
	tree := start(t, staged([]Stage{{Name: "1", Drain: []string{"d"}, Close: []string{"g", "y"}}, {Name: "2", Close: []string{"d"}}},
		group("g", plain("ok", nil), inner), refuse(e2).spec("y"), undrained.spec("d")))
	err := tree.Close(within(t))
	for _, e := range []error{e1, e2, e3} {
		if !errors.Is(err, e) {
			t.Errorf("%v is lost in %v", e, err)
		}
	}
	leaves := Leaves(err)
	if len(leaves) != 3 || strings.Count(err.Error(), "\n") != 3 {
		t.Fatalf("%d leaves: %v", len(leaves), err)
	}
	i := slices.IndexFunc(leaves, func(f *Failure) bool { return f.Path == "g/x" })
	if i < 0 || leaves[i].Label != "wire-x" || leaves[i].Phase != PhaseClose {
		t.Fatalf("%+v", leaves)
	}
	if !strings.Contains(err.Error(), "close g/x (wire-x): one") {
		t.Error(err)
	}
	// Terminal refusals were reported once and count as closed.
	if err := tree.Close(within(t)); err != nil {
		t.Fatalf("reported again: %v", err)
	}
	wait(t, tree.Closed(), "the tree to be closed")
}

func TestHaltingStageStopsTheCascadeAndRetryFinishesTheRest(t *testing.T) {
	j := &journal{}
	refusals := 2
	p := &probe{journal: j, close: func(l *Life, _ *Close) {
		if refusals--; refusals >= 0 {
			l.ClosedWith(errBoom)
			return
		}
		l.ClosedWith(nil)
	}}
	tree := start(t, staged([]Stage{
		{Name: "1", Close: []string{"a"}}, {Name: "2", Close: []string{"b", "c"}, Halts: true}, {Name: "3", Close: []string{"d"}},
	}, plain("a", j), p.spec("b"), plain("c", j), plain("d", j)))
	j.take()
	for range 2 {
		err := tree.Close(within(t))
		if !errors.Is(err, errBoom) {
			t.Fatal(err)
		}
		if got := node(t, tree, "d").State; got != StateOpen {
			t.Fatalf("d is %s after the halt", got)
		}
		if _, err := Ask[int](within(t), ref(t, tree, "d"), 1); err != nil {
			t.Fatalf("what comes after a halt no longer works: %v", err)
		}
		select {
		case <-tree.Closed():
			t.Fatal("closed")
		default:
		}
	}
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	got := j.take()
	if count(got, "close a") != 1 || count(got, "close c") != 1 || count(got, "close b") != 3 || got[len(got)-1] != "close d" {
		t.Fatalf("%q", got)
	}
}

func count(list []string, s string) (n int) {
	for _, l := range list {
		if l == s {
			n++
		}
	}
	return n
}

func TestStageThatDoesNotHaltGoesOn(t *testing.T) {
	j := &journal{}
	p := &probe{close: func(l *Life, _ *Close) { l.ClosedWith(errBoom) }}
	tree := start(t, staged([]Stage{{Name: "1", Close: []string{"a"}}, {Name: "2", Close: []string{"b"}}}, p.spec("a"), plain("b", j)))
	j.take()
	if err := tree.Close(within(t)); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	j.want(t, "close b")
	p.close = nil
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestTerminalRefusalDoesNotHalt(t *testing.T) {
	j := &journal{}
	p := &probe{close: func(l *Life, _ *Close) { l.ClosedWith(Terminal(errBoom)) }}
	tree := start(t, staged([]Stage{{Name: "1", Close: []string{"a"}, Halts: true}, {Name: "2", Close: []string{"b"}}}, p.spec("a"), plain("b", j)))
	j.take()
	if err := tree.Close(within(t)); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	j.want(t, "close b")
}

func TestDeathDuringCloseCountsAsClosed(t *testing.T) {
	ways := map[string]func(*Tree, *Life){
		"fail":       func(_ *Tree, l *Life) { l.Fail(errBoom) },
		"panic":      func(*Tree, *Life) { panic(errBoom) },
		"kill":       func(tree *Tree, _ *Life) { must2(tree.Kill("a", Stop)) },
		"panic kill": func(tree *Tree, _ *Life) { must2(tree.Kill("a", Panic)) },
	}
	for name, die := range ways {
		t.Run(name, func(t *testing.T) {
			var tree *Tree
			p := &probe{close: func(l *Life, _ *Close) { die(tree, l) }}
			tree = start(t, staged([]Stage{{Name: "1", Close: []string{"a"}, Halts: true}, {Name: "2", Close: []string{"b"}}}, p.spec("a"), plain("b", nil)))
			err := tree.Close(within(t))
			if !errors.Is(err, errBoom) && !errors.Is(err, ErrStopped) && !errors.Is(err, ErrKilled) {
				t.Fatalf("its failure is not reported: %v", err)
			}
			if f := Leaves(err)[0]; f.Path != "a" || f.Phase != PhaseClose {
				t.Fatalf("%+v", f)
			}
			wait(t, tree.Closed(), "the tree to be closed")
			if n := node(t, tree, "a"); n.Generation != 1 || n.State != StateClosed {
				t.Fatalf("it came back: %+v", n)
			}
		})
	}
}

func TestDeathDuringDrainIsReportedByTheClose(t *testing.T) {
	p := &probe{drain: func(l *Life) { l.Fail(errBoom) }}
	tree := start(t, staged([]Stage{{Name: "1", Drain: []string{"a"}}, {Name: "2", Close: []string{"a", "b"}}}, p.spec("a"), plain("b", nil)))
	err := tree.Close(within(t))
	if f := Leaves(err); len(f) != 1 || f[0].Phase != PhaseDrain || !errors.Is(err, errBoom) {
		t.Fatalf("%v", err)
	}
	wait(t, tree.Closed(), "the tree to be closed")
}

// A child that does not answer is reported, with the others closed; a later close
// asks it again, and nobody else.
func TestStillRunning(t *testing.T) {
	j := &journal{}
	p := &probe{journal: j}
	asked := 0
	p.close = func(l *Life, _ *Close) {
		if asked++; asked > 1 {
			l.ClosedWith(nil)
		}
	}
	tree := start(t, group("root", plain("a", j), p.spec("b"), plain("c", j)))
	sub := tree.Events(64)
	defer sub.Close()
	j.take()
	ctx, cancel := context.WithTimeout(context.Background(), 900*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := tree.Close(ctx)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
	if f := Leaves(err); len(f) != 1 || f[0].Path != "b" || !errors.Is(err, ErrStillRunning) {
		t.Fatalf("%v", err)
	}
	j.want(t, "close c", "close b", "close a")
	next(t, sub, at[StillRunning]("b"))
	if n := node(t, tree, "b"); n.State != StateStillRunning {
		t.Fatalf("%+v", n)
	}
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	j.want(t, "close b")
	wait(t, tree.Closed(), "the tree to be closed")
}

// An answer that comes after the close gave up counts, and so does a second one.
func TestLateAnswerToAClose(t *testing.T) {
	release := make(chan struct{})
	p := &probe{close: func(l *Life, _ *Close) {
		l.Go("flush", func(context.Context) { <-release; l.ClosedWith(nil) })
	}}
	tree := start(t, group("root", p.spec("a")))
	sub := tree.Events(64)
	defer sub.Close()
	ctx, cancel := context.WithTimeout(context.Background(), instant)
	defer cancel()
	if err := tree.Close(ctx); !errors.Is(err, ErrStillRunning) {
		t.Fatal(err)
	}
	close(release)
	next(t, sub, at[Closed]("a"))
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestHungReceiveAndHungTaskAreNamed(t *testing.T) {
	clock := newClock()
	release := make(chan struct{})
	hung := make(chan struct{}, 2)
	block := func() { hung <- struct{}{}; <-release }
	p := &probe{}
	p.close = func(l *Life, _ *Close) {
		l.Go("forever", func(context.Context) { block() })
		l.ClosedWith(nil)
		block()
	}
	tree := start(t, group("root", p.spec("a")), WithClock(clock))
	sub := tree.Events(64)
	defer sub.Close()
	done := make(chan error, 1)
	go func() { done <- tree.Close(within(t)) }()
	<-hung
	<-hung
	for len(done) == 0 {
		clock.advance(DefaultCloseWithin)
		select {
		case err := <-done:
			done <- err
		case <-time.After(time.Millisecond):
		}
	}
	if err := <-done; !errors.Is(err, ErrStillRunning) {
		t.Fatal(err)
	}
	e := next(t, sub, func(e StillRunning) bool { return len(e.What) == 2 })
	if !slices.Equal(e.What, []string{"receive", "task forever"}) {
		t.Fatal(e)
	}
	if n := node(t, tree, "a"); !slices.Equal(n.Running, e.What) {
		t.Fatalf("%+v", n)
	}
	close(release)
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestConcurrentClosesShareOneFlight(t *testing.T) {
	j := &journal{}
	release := make(chan struct{})
	asked := make(chan struct{})
	p := &probe{journal: j, close: func(l *Life, _ *Close) {
		close(asked)
		l.Go("wait", func(context.Context) { <-release; l.ClosedWith(Terminal(errBoom)) })
	}}
	tree := start(t, group("root", p.spec("a")))
	j.take()
	errs := make(chan error, 8)
	go func() { errs <- tree.Close(within(t)) }()
	wait(t, asked, "the close to begin")
	short, cancel := context.WithCancel(context.Background())
	cancel()
	if err := tree.Close(short); !errors.Is(err, ErrStillRunning) || !errors.Is(err, context.Canceled) {
		t.Fatalf("who gives up waiting gets %v", err)
	}
	var joined sync.WaitGroup
	joined.Add(7)
	for range 7 {
		go func() { joined.Done(); errs <- tree.Close(within(t)) }()
	}
	joined.Wait()
	close(release)
	shared := 0
	for range 8 { // who came too late to join finds it closed
		if err := <-errs; errors.Is(err, errBoom) {
			shared++
		} else if err != nil {
			t.Error(err)
		}
	}
	if shared == 0 {
		t.Error("nobody got the result")
	}
	j.want(t, "close a")
}

// The deadline of a close is divided over its stages by their shares, and what one
// does not use is left for the others.
func TestDeadlineIsDivided(t *testing.T) {
	const total = 8 * time.Second
	var left []time.Duration
	var began time.Time
	note := func() *probe {
		return &probe{close: func(l *Life, c *Close) { left = append(left, c.Deadline.Sub(began)); l.ClosedWith(nil) }}
	}
	long := func(name string) Spec { s := note().spec(name); s.CloseWithin = time.Hour; return s }
	tree := start(t, staged([]Stage{
		{Name: "1", Close: []string{"a"}, Share: 2}, {Name: "2", Close: []string{"b"}}, {Name: "3", Close: []string{"c"}},
	}, long("a"), long("b"), long("c")))
	ctx, cancel := context.WithTimeout(context.Background(), total)
	defer cancel()
	began = time.Now()
	if err := tree.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{total / 2, total / 2, total} {
		if d := left[i] - want; d < -time.Second || d > time.Second {
			t.Errorf("stage %d has until %s, want about %s", i+1, left[i], want)
		}
	}
}

func TestCloseWhileAChildRestarts(t *testing.T) {
	clock := newClock()
	j := &journal{}
	p := &probe{journal: j}
	tree := start(t, group("root", p.spec("a"), plain("b", j)), WithClock(clock), WithRandom(func() float64 { return 1 }))
	p.open = func(l *Life) { l.Fail(errBoom) }
	p.current().Fail(errBoom)
	clock.timer(t, 50*time.Millisecond)
	j.take()
	if err := tree.Close(within(t)); err != nil {
		t.Fatalf("a death from before the close is no failure of it: %v", err)
	}
	j.want(t, "close b")
	wait(t, tree.Closed(), "the tree to be closed")
}

func TestCloseWhileAChildReopens(t *testing.T) {
	asked := make(chan struct{})
	p := &probe{}
	tree := start(t, group("root", p.spec("a"), plain("b", nil)))
	p.open = func(*Life) { close(asked) }
	p.current().Fail(errBoom)
	wait(t, asked, "a to open again")
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	wait(t, tree.Closed(), "the tree to be closed")
}

func TestMessagesAcceptedBeforeTheCloseAreHandledAndLaterOnesRefused(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	closing := make(chan struct{})
	p := &probe{close: func(l *Life, _ *Close) {
		close(closing)
		l.Go("w", func(context.Context) { <-release; l.ClosedWith(nil) })
	}}
	p.receive = func(l *Life, c actor.Context) {
		if n, ok := c.Message().(int); ok {
			if n == 0 {
				close(entered)
				<-release
			}
			c.Respond(n)
		}
	}
	tree := start(t, group("root", p.spec("a")))
	to := ref(t, tree, "a")
	answers := make(chan error, 4)
	for i := range 4 {
		go func() { _, err := Ask[int](within(t), to, i); answers <- err }()
		if i == 0 {
			wait(t, entered, "the first message")
		}
	}
	eventually(t, func() bool { return node(t, tree, "a").InFlight == 4 })
	go func() { _ = tree.Close(within(t)) }()
	eventually(t, func() bool { return node(t, tree, "a").State == StateClosing })
	if _, err := Ask[int](within(t), to, 9); !errors.Is(err, ErrClosing) || !errors.Is(err, ErrUnavailable) {
		t.Fatalf("asked while closing: %v", err)
	}
	close(release)
	for range 4 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	wait(t, tree.Closed(), "the tree to be closed")
	if _, err := Ask[int](within(t), to, 9); !errors.Is(err, ErrClosing) {
		t.Fatalf("asked after the end: %v", err)
	}
}

// A halt stops the group it stands in; the groups around it go on, and a retry comes
// back to what was left.
func TestHaltInsideAGroup(t *testing.T) {
	j := &journal{}
	p := &probe{journal: j, close: func(l *Life, _ *Close) { l.ClosedWith(errBoom) }}
	plane := Spec{Name: "plane", Group: &Group{
		Children: []Spec{plain("barrier", j), p.spec("claim"), plain("admin", j)},
		Stages: []Stage{
			{Name: "1", Close: []string{"admin"}}, {Name: "2", Close: []string{"claim"}, Halts: true}, {Name: "3", Close: []string{"barrier"}},
		},
	}}
	tree := start(t, group("root", plain("last", j), plane))
	j.take()
	err := tree.Close(within(t))
	if f := Leaves(err); len(f) != 1 || f[0].Path != "plane/claim" {
		t.Fatal(err)
	}
	j.want(t, "close plane/admin", "close plane/claim", "close last")
	if n := node(t, tree, "plane/barrier"); n.State != StateOpen {
		t.Fatalf("%+v", n)
	}
	p.close = nil
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	j.want(t, "close plane/claim", "close plane/barrier")
	wait(t, tree.Closed(), "the tree to be closed")
}
