package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/cotal-ai/authplane/supervisor"
)

// lease is a child that took something which its death does not give back.
func lease(p *probe) Spec {
	s := p.spec("lease")
	s.Owes, s.Restart = true, Fence
	return s
}

// fenced is a group whose lease is fenced and cannot open again, since the helper it
// asks at its close is away as well. away says for how long.
type fenced struct {
	tree   *Tree
	lease  *probe
	helper *probe
	away   atomic.Bool
}

func fencedLease(t *testing.T, j *journal, closeLease func(*Life, *Close)) *fenced {
	t.Helper()
	f := &fenced{}
	opens := func(l *Life) {
		if f.away.Load() {
			l.Fail(Outage(errBoom))
			return
		}
		l.Opened()
	}
	f.helper = &probe{journal: j, open: opens}
	f.lease = &probe{journal: j, open: opens, close: closeLease}
	f.tree = start(t, Spec{Name: "root", Group: &Group{
		Children: []Spec{f.helper.spec("helper"), lease(f.lease)},
		Fence:    FencePlan{Reopens: []string{"lease"}},
		Stages: []Stage{
			{Name: "lease", Close: []string{"lease"}, Needs: []string{"helper"}, Halts: true},
			{Name: "rest", Close: []string{"helper"}},
		},
	}})
	return f
}

// lose takes helper and lease away and waits until neither has a life.
func (f *fenced) lose(t *testing.T) {
	t.Helper()
	f.away.Store(true)
	events := f.tree.Events(64)
	defer events.Close()
	f.helper.current().Fail(Outage(errBoom))
	f.lease.current().Fail(Outage(errBoom))
	restarting := map[string]bool{}
	for len(restarting) < 2 {
		e, err := events.Next(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := e.(Restarting); ok && r.Cause != nil {
			restarting[r.Path] = true
		}
	}
}

func TestAChildThatOwesIsClosedWithoutALife(t *testing.T) {
	j := &journal{}
	f := fencedLease(t, j, nil)
	f.lose(t)
	j.take()
	for _, leaf := range Leaves(f.tree.Close(within(t))) {
		t.Errorf("%v", leaf)
	}
	if got := j.take(); !slices.Contains(got, "close lease") {
		t.Errorf("no life was made to close in: %q", got)
	}
}

// What its close asks is opened again for it; until it is, the close is refused and
// may be repeated.
func TestAStageBringsUpWhatItNeeds(t *testing.T) {
	j := &journal{}
	errAway := errors.New("the helper is away")
	f := fencedLease(t, j, nil)
	f.lease.close = func(l *Life, c *Close) {
		if c.Why == Fencing {
			l.ClosedWith(nil)
			return
		}
		l.Go("ask", func(ctx context.Context) {
			if _, err := Ask[int](ctx, l.Ref("helper"), 1); err != nil {
				l.ClosedWith(errors.Join(errAway, err))
				return
			}
			l.ClosedWith(nil)
		})
	}
	f.lose(t)
	err := f.tree.Close(within(t))
	if !errors.Is(err, errAway) {
		t.Fatalf("closed without what it needs: %v", err)
	}
	f.away.Store(false)
	eventually(t, func() bool { return f.tree.Close(within(t)) == nil })
	wait(t, f.tree.Closed(), "the end")
}

// A close that is refused while what it needs is being opened does not call that off:
// the next one finds it open.
func TestARefusedCloseLetsItsNeedsOpen(t *testing.T) {
	f := fencedLease(t, &journal{}, nil)
	var closing, refused, calledOff atomic.Bool
	began, told := make(chan struct{}), make(chan struct{})
	f.helper.open = func(l *Life) {
		if !closing.Load() {
			l.Fail(Outage(errBoom))
			return
		}
		l.Go("open", func(ctx context.Context) {
			close(began)
			<-told
			select {
			case <-ctx.Done():
				calledOff.Store(true)
			case <-time.After(instant):
				l.Opened()
			}
		})
	}
	f.lease.close = func(l *Life, c *Close) {
		if c.Why == Fencing || refused.Swap(true) {
			l.ClosedWith(nil)
			return
		}
		l.Go("refuse", func(context.Context) {
			closing.Store(true)
			<-began
			l.ClosedWith(errBoom)
			close(told)
		})
	}
	f.lose(t)
	if err := f.tree.Close(within(t)); !errors.Is(err, errBoom) {
		t.Fatalf("closed: %v", err)
	}
	if n := node(t, f.tree, "helper"); calledOff.Load() || n.State != StateOpen {
		t.Errorf("the helper is %+v", n)
	}
	if err := f.tree.Close(within(t)); err != nil {
		t.Error(err)
	}
	wait(t, f.tree.Closed(), "the end")
}

// A life that dies at its close leaves what it owes to another one.
func TestWhoDiesAtItsCloseStillOwes(t *testing.T) {
	var closes atomic.Int64
	p := &probe{close: func(l *Life, _ *Close) {
		if closes.Add(1) == 1 {
			panic(errBoom)
		}
		l.ClosedWith(nil)
	}}
	s := p.spec("lease")
	s.Owes = true
	tree := start(t, Spec{Name: "root", Group: &Group{Children: []Spec{s}}})
	if err := tree.Close(within(t)); !errors.Is(err, errBoom) {
		t.Errorf("its death is not told: %v", err)
	}
	wait(t, tree.Closed(), "the end")
	if closes.Load() != 2 {
		t.Errorf("it was asked to close %d times", closes.Load())
	}
}

func TestWhatIsClosedOwesNothing(t *testing.T) {
	j := &journal{}
	f := fencedLease(t, j, nil)
	if err := f.tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	j.want(t, "open helper", "open lease", "close lease", "close helper")
}

// Who dies of an outage while the rest closes has not failed to close.
func TestAnOutageIsNoFailureOfAClose(t *testing.T) {
	for _, cause := range []error{errBoom, Outage(errBoom)} {
		victim := &probe{}
		first := &probe{close: func(l *Life, _ *Close) {
			dead := victim.current()
			dead.Fail(cause)
			l.Go("watch", func(context.Context) { <-dead.Context().Done(); l.ClosedWith(nil) })
		}}
		tree := start(t, staged([]Stage{{Name: "1", Close: []string{"first"}}, {Name: "2", Close: []string{"victim"}}},
			first.spec("first"), victim.spec("victim")))
		if err := tree.Close(within(t)); errors.Is(err, errBoom) == IsOutage(cause) {
			t.Errorf("%v: the close says %v", cause, err)
		}
	}
}
