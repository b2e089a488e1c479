package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"pgregory.net/rapid"

	. "github.com/cotal-ai/authplane/supervisor"
)

// A subject is a leaf of the tree under test. It checks by itself that its lives do
// not overlap.
type subject struct {
	path     string
	failures atomic.Int64 // opens that will fail
	refusals atomic.Int64 // closes that will be refused
	running  atomic.Int64 // lives
	overlap  atomic.Bool
	life     atomic.Pointer[Life]
}

func (s *subject) spec(name string, p Policy) Spec {
	return Spec{Name: name, Restart: p, New: func(l *Life) actor.Actor {
		if s.running.Add(1) != 1 {
			s.overlap.Store(true)
		}
		s.life.Store(l)
		l.Go("beside", func(ctx context.Context) { <-ctx.Done() })
		return actor.ReceiveFunc(func(c actor.Context) {
			switch m := c.Message().(type) {
			case *Open:
				if s.failures.Load() > 0 {
					s.failures.Add(-1)
					l.Fail(errBoom)
					return
				}
				l.Opened()
			case *Drain:
				l.Drained(nil)
			case *Close:
				if m.Why == Shutdown && s.refusals.Load() > 0 {
					s.refusals.Add(-1)
					l.ClosedWith(errBoom)
					return
				}
				l.ClosedWith(nil)
			case *actor.Stopped:
				s.running.Add(-1)
			case int:
				c.Respond(m)
			case boom:
				panic("boom")
			}
		})
	}}
}

// world is the tree under test and the model of it: the generation that every leaf
// must have once all is quiet.
//
//	root  a (alone)  b (rest)  c (fence)  d (alone)  ops (dynamic)  n: n/x (alone) n/e (escalate) n/y (alone)
//	fence: ends ops, reopens c and d
type world struct {
	tree     *Tree
	subjects map[string]*subject
	gen      map[string]uint64
	fails    map[string]int64
	ops      map[string]bool
}

func newWorld(t *rapid.T) *world {
	w := &world{subjects: map[string]*subject{}, gen: map[string]uint64{}, fails: map[string]int64{}, ops: map[string]bool{}}
	leaf := func(path, name string, p Policy) Spec {
		w.subjects[path] = &subject{path: path}
		w.gen[path] = 1
		return w.subjects[path].spec(name, p)
	}
	tree, err := Start(context.Background(), newSystem(), Spec{Name: "root", Group: &Group{
		Children: []Spec{
			leaf("a", "a", Alone), leaf("b", "b", Rest), leaf("c", "c", Fence), leaf("d", "d", Alone),
			{Name: "ops", Group: &Group{Dynamic: true}},
			group("n", leaf("n/x", "x", Alone), leaf("n/e", "e", Escalate), leaf("n/y", "y", Alone)),
		},
		Fence: FencePlan{Ends: []string{"ops"}, Reopens: []string{"c", "d"}},
	}}, WithRestart(never()))
	if err != nil {
		t.Fatal(err)
	}
	w.tree = tree
	return w
}

var allLeaves = []string{"a", "b", "c", "d", "n/x", "n/e", "n/y"}

// reopen is one leaf that is tried until it opens.
func (w *world) reopen(path string) {
	w.gen[path] += 1 + uint64(w.fails[path])
	w.fails[path] = 0
}

// reopenN is the group n, which begins anew when one of its children does not open.
func (w *world) reopenN() {
	for again := true; again; {
		again = false
		for _, path := range []string{"n/x", "n/e", "n/y"} {
			w.gen[path]++
			if w.fails[path] > 0 {
				w.fails[path]--
				again = true
				break
			}
		}
	}
}

func (w *world) fenced() {
	w.ops = map[string]bool{}
	w.reopen("c")
	w.reopen("d")
}

// died is what the model says to a death.
func (w *world) died(path string) {
	switch path {
	case "b":
		w.ops = map[string]bool{}
		w.reopen("b")
		w.reopen("c")
		w.reopen("d")
		w.reopenN()
	case "c":
		w.fenced()
	case "n/e":
		w.reopenN()
	default:
		w.reopen(path)
	}
}

func (w *world) quiet(t *rapid.T) {
	var bad string
	for late := time.Now().Add(limit); time.Now().Before(late); {
		if bad = w.differs(); bad == "" {
			return
		}
		time.Sleep(200 * time.Microsecond) // between two looks
	}
	t.Fatalf("not as the model says: %s", bad)
}

func (w *world) differs() string {
	ops := 0
	for _, n := range w.tree.Snapshot() {
		switch {
		case n.Path == "ops" || n.Path == "n" || n.Path == "root":
			if n.State != StateOpen {
				return fmt.Sprintf("%s is %s", n.Path, n.State)
			}
		case w.subjects[n.Path] != nil:
			if n.State != StateOpen || n.Generation != w.gen[n.Path] {
				return fmt.Sprintf("%s$%d is %s, should be $%d", n.Path, n.Generation, n.State, w.gen[n.Path])
			}
		default:
			if ops++; !w.ops[n.Path] {
				return n.Path + " should be gone"
			}
		}
	}
	if ops != len(w.ops) {
		return fmt.Sprintf("%d operations, should be %d", ops, len(w.ops))
	}
	return ""
}

// Random sequences of deaths, failing opens, fences, additions and removals leave the
// tree exactly where the model says; a close with refusals needs as many attempts.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		defer w.abandon()
		added := 0
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			path := rapid.SampledFrom(allLeaves).Draw(t, "leaf")
			s := w.subjects[path]
			switch rapid.SampledFrom([]string{"fail", "panic", "stop", "boom", "outside", "fence", "failing", "add", "remove", "ask"}).Draw(t, "op") {
			case "fail":
				s.life.Load().Fail(errBoom)
				w.died(path)
			case "panic":
				must2(w.tree.Kill(path, Panic))
				w.died(path)
			case "stop":
				must2(w.tree.Kill(path, Stop))
				w.died(path)
			case "boom":
				if _, err := Ask[int](ctx, must3(w.tree.Ref(path)), boom{}); !errors.Is(err, ErrUnavailable) {
					t.Fatal(err)
				}
				w.died(path)
			case "outside":
				s.life.Load().Go("t", func(context.Context) { panic(errBoom) })
				w.died(path)
			case "fence":
				s.life.Load().Fence(errBoom)
				w.fenced()
			case "failing":
				n := rapid.Int64Range(1, 3).Draw(t, "times")
				s.failures.Store(n)
				w.fails[path] = n
			case "add":
				added++
				name := fmt.Sprint("op", added)
				sub := &subject{}
				must2(w.tree.Add(ctx, "ops", sub.spec(name, Never)))
				w.ops["ops/"+name] = true
			case "remove":
				for path := range w.ops {
					if err := w.tree.Remove(ctx, path); err != nil {
						t.Fatal(err)
					}
					delete(w.ops, path)
					break
				}
			case "ask":
				if got, err := Ask[int](ctx, must3(w.tree.Ref(path)), 7); got != 7 || err != nil {
					t.Fatal(got, err)
				}
			}
			w.quiet(t)
		}
		var attempts int64 = 1
		for _, path := range allLeaves {
			n := rapid.Int64Range(0, 2).Draw(t, "refusals")
			w.subjects[path].refusals.Store(n)
			attempts = max(attempts, n+1)
		}
		for i := int64(1); i <= attempts; i++ {
			if err := w.tree.Close(ctx); (err == nil) != (i == attempts) {
				t.Fatalf("close %d of %d: %v", i, attempts, err)
			}
		}
		<-w.tree.Closed()
		w.check(t)
	})
}

// abandon closes what a failed check left open.
func (w *world) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, s := range w.subjects {
		s.refusals.Store(0)
	}
	_ = w.tree.Close(ctx)
}

func (w *world) check(t *rapid.T) {
	for path, s := range w.subjects {
		if s.overlap.Load() {
			t.Errorf("two lives of %s at once", path)
		}
		if n := s.running.Load(); n != 0 {
			t.Errorf("%d lives of %s are left", n, path)
		}
	}
}

// Three hands do random things at once. Whatever happens: nobody waits in vain, lives
// do not overlap, the tree comes back to where all is open, and it closes whole. The
// close may also come in the middle of it all.
func TestChaos(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		defer w.abandon()
		early := rapid.Bool().Draw(t, "close early")
		type step struct {
			op, leaf int
			n        int64
		}
		var hands sync.WaitGroup
		hung := make(chan error, 64)
		for hand := range 3 {
			var steps []step
			for range rapid.IntRange(1, 15).Draw(t, "steps") {
				steps = append(steps, step{rapid.IntRange(0, 7).Draw(t, "op"), rapid.IntRange(0, 6).Draw(t, "leaf"), rapid.Int64Range(1, 2).Draw(t, "n")})
			}
			hands.Go(func() {
				for i, st := range steps {
					path := allLeaves[st.leaf]
					s := w.subjects[path]
					switch st.op {
					case 0:
						s.life.Load().Fail(errBoom)
					case 1, 2:
						_, _ = w.tree.Kill(path, How(st.op-1))
					case 3:
						s.life.Load().Fence(errBoom)
					case 4:
						s.failures.Store(st.n)
					case 5:
						name := fmt.Sprint("op-", hand, "-", i)
						_, err := w.tree.Add(ctx, "ops", (&subject{}).spec(name, Policy(st.leaf%5)))
						if errors.Is(err, context.DeadlineExceeded) {
							hung <- err
						}
					case 6:
						err := w.tree.Remove(ctx, fmt.Sprint("ops/op-", hand, "-", i-1))
						if errors.Is(err, ErrStillRunning) {
							hung <- err
						}
					default:
						if _, err := Ask[int](ctx, must3(w.tree.Ref(path)), 1); errors.Is(err, context.DeadlineExceeded) {
							hung <- err
						}
					}
				}
			})
		}
		if !early {
			hands.Wait()
			w.settles(t, ctx)
		}
		for range 3 {
			err := w.tree.Close(ctx)
			if errors.Is(err, ErrStillRunning) {
				t.Fatalf("close: %v", err)
			}
			if err == nil {
				break
			}
		}
		hands.Wait()
		select {
		case <-w.tree.Closed():
		case <-ctx.Done():
			t.Fatal("not closed")
		}
		select {
		case err := <-hung:
			t.Fatal(err)
		default:
		}
		w.check(t)
		if err := w.tree.Err(); err != nil {
			t.Fatal(err)
		}
	})
}

func (w *world) settles(t *rapid.T, ctx context.Context) {
	for _, path := range allLeaves {
		for {
			if _, err := Ask[int](ctx, must3(w.tree.Ref(path)), 1); err == nil {
				break
			} else if errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%s does not come back: %v\n%+v", path, err, w.tree.Snapshot())
			}
			time.Sleep(200 * time.Microsecond) // between two looks
			if ctx.Err() != nil {
				t.Fatalf("%s does not come back\n%+v", path, w.tree.Snapshot())
			}
		}
	}
}
