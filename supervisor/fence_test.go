package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	. "github.com/cotal-ai/authplane/supervisor"
)

// plane is a group like those that fences are for: a fence ends the operations and
// reopens both scanners and the claim; writer and reader stay.
type plane struct {
	tree                      *Tree
	j                         *journal
	scanner1, scanner2, claim *probe
	writer                    *probe
	sub                       *Subscription
}

func newPlane(t *testing.T, opts ...Option) *plane {
	t.Helper()
	j := &journal{}
	p := &plane{j: j, scanner1: &probe{journal: j}, scanner2: &probe{journal: j}, claim: &probe{journal: j}, writer: &probe{journal: j}}
	fencing := func(p *probe, name string) Spec { s := p.spec(name); s.Restart = Fence; return s }
	p.tree = start(t, group("root", Spec{Name: "plane", Group: &Group{
		Children: []Spec{
			p.writer.spec("writer"), fencing(p.scanner1, "s1"), fencing(p.scanner2, "s2"), fencing(p.claim, "claim"),
			{Name: "ops", Group: &Group{Dynamic: true}}, plain("reader", j),
		},
		Fence: FencePlan{Ends: []string{"ops"}, Reopens: []string{"s1", "s2", "claim"}},
	}}), opts...)
	p.sub = p.tree.Events(512)
	t.Cleanup(p.sub.Close)
	for _, name := range []string{"op1", "op2"} {
		s := plain(name, j)
		s.Restart = Never
		must2(p.tree.Add(within(t), "plane/ops", s))
	}
	j.take()
	return p
}

// ended checks the journal of one fence.
func (p *plane) ended(t *testing.T, dead string) {
	t.Helper()
	got := p.j.take()
	if len(got) < 2 {
		t.Fatalf("%q", got)
	}
	slices.Sort(got[:2])
	var want []string
	want = append(want, "close plane/ops/op1", "close plane/ops/op2")
	for _, name := range []string{"claim", "s2", "s1"} {
		if name != dead {
			want = append(want, "close plane/"+name)
		}
	}
	want = append(want, "open plane/s1", "open plane/s2", "open plane/claim")
	if !slices.Equal(got, want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
	for _, name := range []string{"writer", "reader"} {
		if n := node(t, p.tree, "plane/"+name); n.Generation != 1 {
			t.Errorf("%s was restarted", name)
		}
	}
	for _, n := range p.tree.Snapshot() {
		if n.Path == "plane/ops/op1" {
			t.Error("the operations' children came back")
		}
	}
}

func TestFenceByDeath(t *testing.T) {
	for _, dead := range []string{"s1", "s2", "claim"} {
		t.Run(dead, func(t *testing.T) {
			p := newPlane(t)
			must2(p.tree.Kill("plane/"+dead, Panic))
			e := next(t, p.sub, at[Fenced]("plane"))
			if e.By != "plane/"+dead || !errors.Is(e.Reason, ErrKilled) {
				t.Fatal(e)
			}
			if h := next(t, p.sub, at[Healed]("plane")); !errors.Is(h.Reason, ErrKilled) || h.Took > 2*time.Second {
				t.Fatal(h)
			}
			p.ended(t, dead)
			s := plain("op3", nil)
			must2(p.tree.Add(within(t), "plane/ops", s))
		})
	}
}

func TestFenceByRequest(t *testing.T) {
	p := newPlane(t)
	p.writer.current().Fence(errBoom)
	if e := next(t, p.sub, at[Fenced]("plane")); e.By != "plane/writer" || !errors.Is(e.Reason, errBoom) {
		t.Fatal(e)
	}
	next(t, p.sub, at[Healed]("plane"))
	p.ended(t, "")
}

// A child of a group without a plan asks the nearest one above.
func TestFenceFromBelow(t *testing.T) {
	p := newPlane(t)
	op := &probe{journal: p.j}
	s := op.spec("op3")
	s.Restart = Never
	must2(p.tree.Add(within(t), "plane/ops", s))
	op.current().Fence(errBoom)
	next(t, p.sub, at[Healed]("plane"))
	for _, n := range p.tree.Snapshot() {
		if n.Path == "plane/ops/op3" {
			t.Fatal("it is still there")
		}
	}
}

func TestFenceWithoutAnyPlanIsAFailure(t *testing.T) {
	p := &probe{}
	tree := start(t, group("root", p.spec("a")))
	sub := tree.Events(16)
	defer sub.Close()
	p.current().Fence(errBoom)
	if e := next(t, sub, at[Died]("a")); !errors.Is(e.Cause, errBoom) {
		t.Fatal(e)
	}
}

func TestFirstReasonWins(t *testing.T) {
	p := newPlane(t)
	entered, release := make(chan struct{}), make(chan struct{})
	p.claim.close = func(l *Life, c *Close) {
		if c.Why != Fencing || !errors.Is(c.Cause, errBoom) {
			t.Errorf("closed because of %v, %v", c.Why, c.Cause)
		}
		close(entered)
		l.Go("wait", func(context.Context) { <-release; l.ClosedWith(nil) })
	}
	p.writer.current().Fence(errBoom)
	wait(t, entered, "the claim to be closed")
	p.claim.close = nil
	p.writer.current().Fence(errors.New("second"))
	p.scanner1.current().Fence(errors.New("third"))
	if _, err := p.tree.Add(within(t), "plane/ops", plain("late", nil)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("added while a fence heals: %v", err)
	}
	close(release)
	fences := 0
	for {
		e := next(t, p.sub, func(e Event) bool { return e.Where().Path == "plane" })
		if _, ok := e.(Fenced); ok {
			fences++
		}
		if h, ok := e.(Healed); ok {
			if !errors.Is(h.Reason, errBoom) {
				t.Errorf("healed from %v", h.Reason)
			}
			break
		}
	}
	if fences != 1 {
		t.Errorf("%d fences", fences)
	}
	if n := node(t, p.tree, "plane/claim"); n.Generation != 2 {
		t.Errorf("%+v", n)
	}
}

// What was reopened and dies while the rest heals is ended and reopened once more, in
// order; what does not open is tried again.
func TestDeathsWhileAFenceHeals(t *testing.T) {
	p := newPlane(t)
	n := 0
	p.claim.open = func(l *Life) {
		switch n++; n {
		case 1:
			l.Fail(errBoom)
		case 2:
			p.scanner1.current().Fail(errBoom)
		case 3:
			p.scanner2.current().Fence(errors.New("from a reopened one"))
		default:
			l.Opened()
		}
	}
	p.writer.current().Fence(errBoom)
	next(t, p.sub, at[Fenced]("plane"))
	next(t, p.sub, at[Healed]("plane"))
	got := p.j.take()[2:] // without the operations
	want := []string{
		"close plane/claim", "close plane/s2", "close plane/s1",
		"open plane/s1", "open plane/s2", "open plane/claim", // fails
		"open plane/claim",                                                     // s1 dies
		"close plane/s2", "open plane/s1", "open plane/s2", "open plane/claim", // s2 asks for a fence
		"close plane/s2", "close plane/s1", "open plane/s1", "open plane/s2", "open plane/claim",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
}

func TestFencesHaveABudget(t *testing.T) {
	p := newPlane(t, WithRestart(RestartConfig{Limit: 3, Window: time.Hour}))
	for range 2 {
		p.writer.current().Fence(errBoom)
		next(t, p.sub, at[Healed]("plane"))
	}
	for range 4 {
		p.writer.current().Fence(Outage(errBoom))
		next(t, p.sub, at[Healed]("plane"))
	}
	p.writer.current().Fence(errBoom)
	if e := next(t, p.sub, at[Failed]("plane")); !errors.Is(e.Cause, ErrExhausted) || !errors.Is(e.Cause, errBoom) {
		t.Fatal(e)
	}
	next(t, p.sub, at[Opened]("plane")) // its group restarts it
}

func TestOutageWhileAFenceHealsIsRetriedForEver(t *testing.T) {
	p := newPlane(t, WithRestart(RestartConfig{Limit: 3, Window: time.Hour}))
	n := 0
	p.scanner1.open = func(l *Life) {
		if n++; n < 20 {
			l.Fail(Outage(errBoom))
			return
		}
		l.Opened()
	}
	must2(p.tree.Kill("plane/claim", Stop))
	next(t, p.sub, at[Healed]("plane"))
	if err := p.tree.Err(); err != nil {
		t.Fatal(err)
	}
}

// A member that hangs when a fence closes it is ended by force, and the fence goes on
// when it is gone.
func TestFenceEndsWhatWillNotClose(t *testing.T) {
	clock := newClock()
	p := newPlane(t, WithClock(clock))
	asked := make(chan struct{})
	p.claim.close = func(*Life, *Close) { close(asked) }
	p.writer.current().Fence(errBoom)
	wait(t, asked, "the claim to be closed")
	p.claim.close = nil
	clock.timer(t, DefaultCloseWithin)
	clock.advance(DefaultCloseWithin)
	next(t, p.sub, at[Healed]("plane"))
}

func TestCleanCloseNeverFences(t *testing.T) {
	p := newPlane(t)
	p.scanner2.close = func(l *Life, _ *Close) {
		p.writer.current().Fence(errBoom)
		l.Fail(errBoom)
	}
	if err := p.tree.Close(within(t)); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	p.sub.Close()
	for e := range p.sub.All(within(t)) {
		if _, ok := e.(Fenced); ok {
			t.Fatal(e)
		}
	}
}

func TestCloseWhileAFenceHeals(t *testing.T) {
	p := newPlane(t)
	asked := make(chan struct{})
	p.scanner2.open = func(*Life) { close(asked) }
	p.writer.current().Fence(errBoom)
	wait(t, asked, "s2 to reopen")
	if err := p.tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	wait(t, p.tree.Closed(), "the tree to be closed")
	if got := p.j.take(); slices.Contains(got, "close plane/claim") && count(got, "close plane/claim") != 1 {
		t.Fatalf("%q", got)
	}
}
