package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	. "github.com/cotal-ai/authplane/supervisor"
)

func TestChildrenOpenInOrderAndCloseInReverse(t *testing.T) {
	j := &journal{}
	tree := start(t, group("root", plain("a", j), group("g", plain("b", j), plain("c", j)), plain("d", j)))
	j.want(t, "open a", "open g/b", "open g/c", "open d")
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	j.want(t, "close d", "close g/c", "close g/b", "close a")
	wait(t, tree.Closed(), "the tree to be closed")
	for _, n := range tree.Snapshot() {
		if n.State != StateClosed {
			t.Errorf("%s is %s", n.Path, n.State)
		}
	}
}

func TestChildOpensOnlyWhenTheOneBeforeHasSaidSo(t *testing.T) {
	j := &journal{}
	asked, say := make(chan struct{}), make(chan struct{})
	slow := &probe{journal: j, open: func(l *Life) {
		close(asked)
		l.Go("connect", func(context.Context) { <-say; l.Opened() })
	}}
	done := make(chan *Tree)
	go func() {
		tree, _ := open(t, group("root", slow.spec("a"), plain("b", j)))
		done <- tree
	}()
	wait(t, asked, "a to be asked")
	j.want(t, "open a")
	close(say)
	if <-done == nil {
		t.Fatal("not open")
	}
	j.want(t, "open b")
}

// A failure at each place unwinds exactly what was open, in reverse, and all of it
// although some of the unwinding fails.
func TestFailedOpenUnwinds(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	ways := map[string]func(*Life){
		"failure": func(l *Life) { l.Fail(errBoom) },
		"panic":   func(*Life) { panic(errBoom) },
		"task":    func(l *Life) { l.Go("x", func(context.Context) { panic(errBoom) }) },
		"nil":     func(l *Life) { l.Fail(nil) },
	}
	for way, fail := range ways {
		for at := range names {
			t.Run(fmt.Sprintf("%s at %s", way, names[at]), func(t *testing.T) {
				j := &journal{}
				unwind := errors.New("will not close")
				var kids []Spec
				var want []string
				for i, name := range names {
					p := &probe{journal: j}
					if i == at {
						p.open = fail
					}
					if i%2 == 0 {
						p.close = func(l *Life, _ *Close) { l.ClosedWith(unwind) }
					}
					s := p.spec(name)
					s.Label = "label-" + name
					kids = append(kids, s)
					if i <= at {
						want = append(want, "open "+name)
					}
				}
				for i := at - 1; i >= 0; i-- {
					want = append(want, "close "+names[i])
				}
				_, err := open(t, group("root", kids...))
				if err == nil {
					t.Fatal("open")
				}
				j.want(t, want...)
				if cause := errBoom; way != "nil" && !errors.Is(err, cause) {
					t.Errorf("the cause is lost: %v", err)
				}
				if way == "nil" && !errors.Is(err, ErrUnknownFailure) {
					t.Errorf("nil is no unknown failure: %v", err)
				}
				leaves := Leaves(err)
				if f := leaves[0]; f.Path != names[at] || f.Label != "label-"+names[at] || f.Phase != PhaseOpen {
					t.Errorf("first failure is %+v", f)
				}
				for i, f := range leaves[1:] {
					name := names[(at-1)/2*2-2*i]
					if f.Path != name || f.Phase != PhaseUnwind || !errors.Is(f, unwind) {
						t.Errorf("unwind failure %d is %v, want one of %s", i, f, name)
					}
				}
				if got, want := len(leaves)-1, (at+1)/2; got != want {
					t.Errorf("%d unwind failures, want %d: %v", got, want, err)
				}
				if lines := strings.Count(err.Error(), "\n"); len(leaves) > 1 && lines != len(leaves) {
					t.Errorf("%d lines for %d failures:\n%v", lines, len(leaves), err)
				}
			})
		}
	}
}

func TestPanicInNewIsAFailedOpen(t *testing.T) {
	_, err := open(t, group("root", Spec{Name: "a", New: func(*Life) actor.Actor { panic(errBoom) }}))
	var p *PanicError
	if !errors.As(err, &p) || p.Where != "new" || !errors.Is(err, errBoom) {
		t.Fatalf("%v", err)
	}
}

func TestChildThatDoesNotSayItIsOpen(t *testing.T) {
	clock := newClock()
	asked := make(chan struct{})
	p := &probe{open: func(*Life) { close(asked) }}
	s := p.spec("a")
	s.OpenWithin = 7 * time.Second
	done := make(chan error, 1)
	go func() { _, err := open(t, group("root", s), WithClock(clock)); done <- err }()
	wait(t, asked, "a to be asked")
	clock.timer(t, 7*time.Second)
	clock.advance(7 * time.Second)
	if err := <-done; !errors.Is(err, ErrLate) {
		t.Fatal(err)
	}
}

func TestGroupHasALimitOfItsOwn(t *testing.T) {
	clock := newClock()
	asked := make(chan struct{})
	j := &journal{}
	p := &probe{open: func(*Life) { close(asked) }}
	g := group("g", plain("a", j), p.spec("b"))
	g.OpenWithin = 3 * time.Second
	done := make(chan error, 1)
	go func() { _, err := open(t, group("root", g), WithClock(clock)); done <- err }()
	wait(t, asked, "b to be asked")
	clock.advance(3 * time.Second)
	if err := <-done; !errors.Is(err, ErrLate) {
		t.Fatal(err)
	}
	j.want(t, "open g/a", "close g/a")
}

func TestStartEndsWithItsContext(t *testing.T) {
	j := &journal{}
	asked := make(chan struct{})
	stuck := &probe{journal: j, open: func(*Life) { close(asked) }}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := Start(ctx, newSystem(), group("root", plain("a", j), stuck.spec("b")))
		done <- err
	}()
	wait(t, asked, "b to be asked")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	j.want(t, "open a", "open b", "close a")
}

func TestLeafAsRoot(t *testing.T) {
	tree := start(t, plain("only", nil))
	if got := must2(Ask[int](within(t), ref(t, tree, "only"), 3)); got != 3 {
		t.Fatal(got)
	}
	sub := tree.Events(16)
	defer sub.Close()
	must2(tree.Kill("only", Panic))
	next(t, sub, at[Opened]("only"))
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestNothingIsReachableBeforeItIsOpen(t *testing.T) {
	var during, self error
	p := &probe{}
	p.open = func(l *Life) {
		l.Go("look", func(ctx context.Context) {
			_, self = Ask[int](ctx, l.Self(), 1)
			_, during = Ask[int](ctx, l.Ref("later"), 1)
			l.Opened()
		})
	}
	tree := start(t, group("root", p.spec("a"), plain("later", nil)))
	if !errors.Is(self, ErrUnavailable) || !errors.Is(during, ErrUnavailable) {
		t.Fatalf("asked while opening: %v, %v", self, during)
	}
	if got := must2(Ask[int](within(t), p.current().Ref("later"), 1)); got != 1 {
		t.Fatal("a ref made before the child was open is of no use")
	}
	_ = tree
}

func TestOutageIsRetriedWhileOpening(t *testing.T) {
	clock := newClock()
	tries := 0
	p := &probe{open: func(l *Life) {
		if tries++; tries <= 30 {
			l.Fail(Outage(errBoom))
			return
		}
		l.Opened()
	}}
	done := make(chan *Tree, 1)
	go func() {
		tree, err := open(t, group("root", plain("first", nil), group("g", p.spec("a"))), WithClock(clock), WithRandom(func() float64 { return 1 }))
		if err != nil {
			t.Error(err)
		}
		done <- tree
	}()
	for i := range 29 { // the first retry is at once
		d := min(50*time.Millisecond<<min(i, 10), 2*time.Second)
		clock.timer(t, d)
		clock.advance(d)
	}
	tree := <-done
	if tree == nil || node(t, tree, "g/a").Generation != 31 {
		t.Fatal("not open at the 31st try")
	}
	if err := tree.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestOutageWhileOpeningEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	tries := 0
	p := &probe{open: func(l *Life) {
		if tries++; tries == 5 {
			cancel()
		}
		l.Fail(Outage(errBoom))
	}}
	j := &journal{}
	_, err := Start(ctx, newSystem(), group("root", plain("a", j), p.spec("b")), WithRestart(never()))
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	j.want(t, "open a", "close a")
}

// What is open already and dies while others open is dealt with as its policy says.
func TestDeathsWhileTheGroupOpens(t *testing.T) {
	for _, policy := range []Policy{Alone, Rest, Fence, Escalate, Never} {
		t.Run(policy.String(), func(t *testing.T) {
			j := &journal{}
			first := &probe{journal: j}
			s := first.spec("a")
			s.Restart = policy
			opens := 0
			last := &probe{journal: j, open: func(l *Life) {
				if opens++; opens == 1 {
					first.current().Fail(errBoom)
				}
				if policy == Alone || policy == Never || opens > 1 {
					l.Opened()
				}
			}}
			root := group("root", s, plain("b", j), last.spec("c"))
			if policy == Fence {
				root.Group.Fence = FencePlan{Reopens: []string{"a"}}
			}
			tree, err := open(t, root)
			if policy == Escalate {
				if !errors.Is(err, errBoom) || tree != nil {
					t.Fatal("the failure did not escalate")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if policy == Alone {
				eventually(t, func() bool { n := node(t, tree, "a"); return n.Generation == 2 && n.State == StateOpen })
			}
			got := j.take()
			want := map[Policy][]string{
				Alone: {"open a", "open a", "open b", "open c"},
				Rest:  {"open a", "open b", "open c", "close b", "open a", "open b", "open c"},
				Fence: {"open a", "open b", "open c", "open a", "open c"},
				Never: {"open a", "open b", "open c"},
			}[policy]
			if policy == Alone {
				slices.Sort(got) // it restarts beside the others
			}
			if !slices.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
		})
	}
}

func TestSpecIsValidatedWhole(t *testing.T) {
	newer := func(*Life) actor.Actor { return nil }
	_, err := Start(within(t), newSystem(), Spec{Name: "root", Group: &Group{
		Children: []Spec{
			{Name: "A", New: newer},
			{Name: "none"},
			{Name: "both", New: newer, Group: &Group{}},
			{Name: "twice", New: newer}, {Name: "twice", New: newer},
			{Name: "root", New: newer},
			{Name: "g", Owes: true, Group: &Group{Children: []Spec{{Name: "f", New: newer, Restart: Fence}}}},
		},
		Stages: []Stage{
			{Name: "1", Drain: []string{"who"}, Close: []string{"none", "none", "nobody"}},
			{Name: "2", Drain: []string{"none", "g", "g"}, Needs: []string{"spirit", "none"}},
		},
		Fence: FencePlan{Ends: []string{"g"}, Reopens: []string{"ghost"}},
	}})
	if !errors.Is(err, ErrSpec) {
		t.Fatal(err)
	}
	for _, want := range []string{
		`name "A" is not`, "root/none: exactly one", "root/both: exactly one", `two children are named "twice"`,
		"bears the name of the root", "f fences, but", `drains "who", which is no child`, `closes "none" again`,
		`closes "nobody", which is no child`, `drains "none", which is closed by then`, `drains "g" again`,
		`no stage closes "g"`, `ends "g", which is no dynamic group`, `reopens "ghost"`,
		`needs "spirit", which is no child`, `needs "none", which is closed by then`, "only a leaf can owe",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
}

// TestFailureOutlastsTheCaller has an open fail, and its unwinding take until nobody
// waits for the start any more: the error says what failed all the same.
func TestFailureOutlastsTheCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	first := &probe{close: func(l *Life, _ *Close) { cancel(); l.ClosedWith(nil) }}
	failing := &probe{open: func(l *Life) { l.Fail(errBoom) }}
	tree, err := Start(ctx, newSystem(), group("root", group("inner", first.spec("first"), failing.spec("failing"))))
	if tree != nil || !errors.Is(err, errBoom) {
		t.Fatalf("got %v", err)
	}
}
