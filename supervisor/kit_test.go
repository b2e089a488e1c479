package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	. "github.com/cotal-ai/authplane/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is how long a test waits for what must happen at once.
const limit = 20 * time.Second

var errBoom = errors.New("boom")

func newSystem() *actor.ActorSystem {
	return actor.NewActorSystem(
		// The library leaves a goroutine behind for this long after a dead letter.
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func wait(t testing.TB, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(limit):
		t.Fatalf("waited in vain for %s", what)
	}
}

func must[T any](t testing.TB, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A journal is what actors did, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.lines
	j.lines = nil
	return out
}

func (j *journal) want(t testing.TB, lines ...string) {
	t.Helper()
	if got := j.take(); !slices.Equal(got, lines) {
		t.Fatalf("journal:\n got %q\nwant %q", got, lines)
	}
}

// A probe is a leaf whose behaviour a test sets. Without hooks it opens, drains and
// closes at once, and answers an int with the int, "who" with its generation.
type probe struct {
	journal *journal
	made    func(*Life)
	open    func(*Life)
	drain   func(*Life)
	close   func(*Life, *Close)
	receive func(*Life, actor.Context)

	mu   sync.Mutex
	life *Life
}

type boom struct{} // panics

func (p *probe) current() *Life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

func (p *probe) spec(name string) Spec {
	return Spec{Name: name, New: func(l *Life) actor.Actor {
		p.mu.Lock()
		p.life = l
		p.mu.Unlock()
		if p.made != nil {
			p.made(l)
		}
		return &probeActor{p, l}
	}}
}

type probeActor struct {
	*probe
	life *Life
}

func (p *probeActor) Receive(c actor.Context) {
	l := p.life
	switch m := c.Message().(type) {
	case *Open:
		p.journal.add("open %s", l.Path())
		if p.open != nil {
			p.open(l)
			return
		}
		l.Opened()
	case *Drain:
		p.journal.add("drain %s", l.Path())
		if p.drain != nil {
			p.drain(l)
			return
		}
		l.Drained(nil)
	case *Close:
		p.journal.add("close %s", l.Path())
		if p.close != nil {
			p.close(l, m)
			return
		}
		l.ClosedWith(nil)
	default:
		if p.receive != nil {
			p.receive(l, c)
			return
		}
		switch m := m.(type) {
		case int:
			c.Respond(m)
		case boom:
			panic(errBoom)
		case string:
			if m == "who" {
				c.Respond(l.Generation())
			}
		}
	}
}

// plain is a leaf without hooks.
func plain(name string, j *journal) Spec { return (&probe{journal: j}).spec(name) }

func group(name string, kids ...Spec) Spec { return Spec{Name: name, Group: &Group{Children: kids}} }

func start(t testing.TB, root Spec, opts ...Option) *Tree {
	t.Helper()
	return startOn(t, newSystem(), root, opts...)
}

func startOn(t testing.TB, system *actor.ActorSystem, root Spec, opts ...Option) *Tree {
	t.Helper()
	tree, err := openOn(t, system, root, opts...)
	return must(t, tree, err)
}

// open starts a tree that the test's end closes, whatever it left behind.
func open(t testing.TB, root Spec, opts ...Option) (*Tree, error) {
	return openOn(t, newSystem(), root, opts...)
}

func openOn(t testing.TB, system *actor.ActorSystem, root Spec, opts ...Option) (*Tree, error) {
	tree, err := Start(within(t), system, root, opts...)
	if tree != nil {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			for _, f := range Leaves(tree.Close(ctx)) { // a death just before the close is one of its failures
				if !errors.Is(f, errBoom) && !errors.Is(f, ErrKilled) && !errors.Is(f, ErrStopped) {
					t.Errorf("close: %v", f)
				}
			}
		})
	}
	return tree, err
}

func ref(t testing.TB, tree *Tree, path string) Ref {
	t.Helper()
	r, ok := tree.Ref(path)
	if !ok {
		t.Fatalf("no %s", path)
	}
	return r
}

// eventually polls where nothing could be waited for.
func eventually(t testing.TB, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(limit); !cond(); <-tick.C {
		if time.Now().After(late) {
			t.Fatal("it did not come about")
		}
	}
}

// next waits for an event that want accepts.
func next[E Event](t testing.TB, sub *Subscription, want func(E) bool) E {
	t.Helper()
	ctx := within(t)
	var seen []string
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("waited in vain for an event; seen: %q", seen)
		}
		if v, ok := e.(E); ok && (want == nil || want(v)) {
			return v
		}
		seen = append(seen, e.String())
	}
}

func at[E Event](path string) func(E) bool {
	return func(e E) bool { return e.Where().Path == path }
}

func node(t testing.TB, tree *Tree, path string) Node {
	t.Helper()
	for _, n := range tree.Snapshot() {
		if n.Path == path {
			return n
		}
	}
	t.Fatalf("no %s in the snapshot", path)
	return Node{}
}

// A fakeClock stands still unless it is advanced.
type fakeClock struct {
	mu     sync.Mutex
	cond   *sync.Cond
	now    time.Time
	timers []*fakeTimer
}

type fakeTimer struct {
	clock *fakeClock
	at    time.Time
	d     time.Duration
	ch    chan time.Time
	done  bool
}

func newClock() *fakeClock {
	c := &fakeClock{now: time.Unix(1_000_000, 0)}
	c.cond = sync.NewCond(&c.mu)
	return c
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) NewTimer(d time.Duration) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &fakeTimer{clock: c, at: c.now.Add(d), d: d, ch: make(chan time.Time, 1)}
	if d <= 0 {
		t.done = true
		t.ch <- c.now
		return t
	}
	c.timers = append(c.timers, t)
	c.cond.Broadcast()
	return t
}

func (t *fakeTimer) C() <-chan time.Time { return t.ch }

func (t *fakeTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := !t.done
	t.done = true
	return was
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	kept := c.timers[:0]
	for _, t := range c.timers {
		switch {
		case t.done:
		case t.at.After(c.now):
			kept = append(kept, t)
		default:
			t.done = true
			t.ch <- c.now
		}
	}
	c.timers = kept
}

// timer waits until a timer of exactly d runs.
func (c *fakeClock) timer(t testing.TB, d time.Duration) {
	t.Helper()
	stop := context.AfterFunc(within(t), func() { c.cond.Broadcast() })
	defer stop()
	late := time.Now().Add(limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for _, timer := range c.timers {
			if !timer.done && timer.d == d {
				return
			}
		}
		if time.Now().After(late) {
			t.Fatalf("no timer of %s", d)
		}
		c.cond.Wait()
	}
}

// A wire is a resource.
type wire struct {
	label string
	once  sync.Once
	ended chan struct{}
}

func newWire(label string) *wire { return &wire{label: label, ended: make(chan struct{})} }

func (w *wire) Label() string          { return w.label }
func (w *wire) Sever()                 { w.once.Do(func() { close(w.ended) }) }
func (w *wire) Ended() <-chan struct{} { return w.ended }
