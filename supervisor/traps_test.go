package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	. "github.com/cotal-ai/authplane/supervisor"
)

// Each test here shows first that the plain library has a trap, so that the kit's
// answer to it is not taken for superstition, and then that the kit has not. When a
// newer version of the library makes a first half fail, its answer may go.

// instant is how long something is watched that must not happen.
const instant = 50 * time.Millisecond

func restartMessage(system *actor.ActorSystem, pid *actor.PID) {
	if p, ok := system.ProcessRegistry.Get(pid); ok {
		p.SendSystemMessage(pid, &actor.Restart{})
	}
}

// A name is known before its mailbox can run: who sends in that moment panics.
func TestTrapSendWhileSpawning(t *testing.T) {
	system := newSystem()
	var inSender any
	props := actor.PropsFromFunc(func(actor.Context) {}, actor.WithOnInit(func(c actor.Context) {
		defer func() { inSender = recover() }()
		system.Root.Send(c.Self(), "hello") // anybody could, from anywhere
	}))
	must2(system.Root.SpawnNamed(props, "x"))
	if inSender == nil {
		t.Error("the library has no trap here any more")
	}

	// The kit: a new life stands behind an address that was there all the time.
	var tree *Tree
	p := &probe{}
	p.made = func(l *Life) {
		if l.Generation() > 1 {
			tree.Ref("a")
			if err := Tell(l.Self(), 1); !errors.Is(err, ErrUnavailable) {
				t.Errorf("told while it is made: %v", err)
			}
		}
	}
	tree = start(t, group("root", p.spec("a")), WithRestart(never()))
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = Tell(must3(tree.Ref("a")), 1)
				}
			}
		})
	}
	sub := tree.Events(512)
	defer sub.Close()
	for i := range 10 {
		must2(tree.Kill("a", Stop))
		next(t, sub, func(e Opened) bool { return e.Generation == uint64(i+2) })
	}
	close(stop)
	senders.Wait()
	must2(Ask[int](within(t), ref(t, tree, "a"), 1))
}

// The Terminated of an old life takes the new child of the same name from its parent.
func TestTrapLateTerminated(t *testing.T) {
	system := newSystem()
	respawn, respawned := make(chan struct{}), make(chan struct{})
	var once sync.Once
	child := actor.PropsFromFunc(func(c actor.Context) {
		if _, ok := c.Message().(*actor.Stopped); ok {
			once.Do(func() { close(respawn); <-respawned }) // its Terminated is not sent yet
		}
	})
	children := make(chan int, 1)
	parent := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			pid := must2(c.SpawnNamed(child, "x"))
			c.Stop(pid)
			<-respawn
			must2(c.SpawnNamed(child, "x"))
			close(respawned)
		case *actor.Terminated:
			children <- len(c.Children())
		}
	}))
	if n := <-children; n != 0 {
		t.Errorf("the library has no trap here any more: %d children", n)
	}
	_ = system.Root.PoisonFuture(parent).Wait()

	// The kit: lives have names of their own, and an end counts for its generation alone.
	j := &journal{}
	p := &probe{journal: j}
	tree := start(t, group("root", p.spec("a")), WithRestart(never()))
	sub := tree.Events(512)
	defer sub.Close()
	for i := range 50 {
		p.current().Fail(errBoom)
		next(t, sub, func(e Opened) bool { return e.Generation == uint64(i+2) })
	}
	j.take()
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	j.want(t, "close a")
}

// A request behind a Stop is never answered.
func TestTrapRequestBehindAStop(t *testing.T) {
	system := newSystem()
	entered, release := make(chan struct{}), make(chan struct{})
	pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case string:
			close(entered)
			<-release
		case int:
			c.Respond(1)
		}
	}))
	system.Root.Send(pid, "block")
	<-entered
	behind := system.Root.RequestFuture(pid, 1, instant)
	system.Root.Stop(pid) // overtakes it
	close(release)
	if err := behind.Wait(); !errors.Is(err, actor.ErrTimeout) {
		t.Errorf("the library has no trap here any more: %v", err)
	}

	for _, how := range []How{Stop, Panic} {
		entered, release := make(chan struct{}), make(chan struct{})
		p := &probe{receive: func(l *Life, c actor.Context) {
			if c.Message() == "block" {
				close(entered)
				<-release
			}
		}}
		tree := start(t, group("root", p.spec("a")))
		to := ref(t, tree, "a")
		answers := make(chan error, 3)
		go func() { _, err := Ask[any](within(t), to, "block"); answers <- err }()
		<-entered
		for range 2 {
			go func() { _, err := Ask[any](within(t), to, 1); answers <- err }()
		}
		eventually(t, func() bool { return node(t, tree, "a").InFlight == 3 })
		must2(tree.Kill("a", how))
		close(release)
		for range 3 {
			if err := <-answers; !errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", how, err)
			}
		}
	}

}

// A life that fails while its actor hangs answers at once all the same.
func TestHungActorKeepsNobodyWaiting(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	p := &probe{receive: func(l *Life, c actor.Context) {
		if c.Message() == "block" {
			close(entered)
			<-release
		}
	}}
	tree := start(t, group("root", p.spec("a")))
	answer := make(chan error, 1)
	go func() { _, err := Ask[any](within(t), ref(t, tree, "a"), "block"); answer <- err }()
	<-entered
	p.current().Fail(errBoom)
	if err := <-answer; !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	close(release)
}

// A bounded mailbox of the library blocks the sender, a dropping one loses silently
// (and spins for ever afterwards, since it goes on counting what it lost).
func TestTrapBoundedMailboxes(t *testing.T) {
	for name, dropping := range map[string]bool{"bounded": false, "dropping": true} {
		mailbox := actor.Bounded(4)
		if dropping {
			mailbox = actor.BoundedDropping(4)
		}
		system := newSystem()
		entered, release := make(chan struct{}), make(chan struct{})
		got := 0
		pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch c.Message().(type) {
			case string:
				close(entered)
				<-release
			case int:
				got++
			case chan int:
				c.Message().(chan int) <- got
				runtime.Goexit() // ends what would otherwise spin for ever
			}
		}, actor.WithMailbox(mailbox)))
		system.Root.Send(pid, "block")
		<-entered
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for i := range 20 {
				system.Root.Send(pid, i)
			}
		}()
		if dropping {
			wait(t, sent, "the sender")
		} else {
			select {
			case <-sent:
				t.Errorf("%s: the library has no trap here any more", name)
			case <-time.After(instant):
			}
		}
		close(release)
		wait(t, sent, "the sender")
		counted := make(chan int)
		system.Root.Send(pid, counted)
		if n := <-counted; dropping && n == 20 {
			t.Errorf("%s: the library has no trap here any more", name)
		}
	}
	// The kit: TestFullMailboxRefusesAtOnceAndLosesNothing.
}

// An actor that panics while it stops, or is restarted while it stops, lives again.
func TestTrapRevivedWhileStopping(t *testing.T) {
	system := newSystem()
	starts := make(chan struct{}, 4)
	var once sync.Once
	pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			starts <- struct{}{}
		case *actor.Stopping:
			once.Do(func() { panic("while stopping") })
		}
	}))
	<-starts
	system.Root.Stop(pid)
	select {
	case <-starts:
	case <-time.After(limit):
		t.Error("panic: the library has no trap here any more")
	}
	_ = system.Root.StopFuture(pid).Wait()

	held := make(chan struct{})
	var restarting sync.Once
	pid = system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			c.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				if _, ok := c.Message().(*actor.Stopping); ok {
					<-held
				}
			}))
			starts <- struct{}{}
		case *actor.Stopping:
			restarting.Do(func() { restartMessage(system, c.Self()) })
		}
	}))
	<-starts
	process, _ := system.ProcessRegistry.Get(pid)
	process.SendSystemMessage(pid, &actor.Stop{})
	close(held)
	select {
	case <-starts:
	case <-time.After(limit):
		t.Error("restart: the library has no trap here any more")
	}
	_ = system.Root.StopFuture(pid).Wait()

	// The kit.
	j := &journal{}
	p := &probe{journal: j}
	var tree *Tree
	p.receive = func(l *Life, c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			j.add("started %d", l.Generation())
		case *actor.Stopping:
			restartMessage(c.ActorSystem(), c.Self())
			panic("while stopping")
		case *actor.Stopped:
			j.add("stopped %d", l.Generation())
			panic("while stopped")
		}
	}
	tree = start(t, group("root", p.spec("a")))
	sub := tree.Events(64)
	defer sub.Close()
	for _, how := range []How{Stop, Panic} {
		must2(tree.Kill("a", how))
		next(t, sub, at[Opened]("a"))
	}
	restartMessage(systemOf(t, p), ref(t, tree, "a").PID())
	next(t, sub, at[Opened]("a"))
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := 1; i <= 4; i++ {
		want = append(want, fmt.Sprint("started ", i), "open a")
		if i == 4 {
			want = append(want, "close a")
		}
		want = append(want, fmt.Sprint("stopped ", i))
	}
	j.want(t, want...)
}

// systemOf asks a probe for the system it lives in.
func systemOf(t *testing.T, p *probe) *actor.ActorSystem {
	t.Helper()
	got := make(chan *actor.ActorSystem, 1)
	old := p.receive
	p.receive = func(l *Life, c actor.Context) {
		if c.Message() == "system" {
			got <- c.ActorSystem()
			return
		}
		old(l, c)
	}
	p.current().Tell("system")
	return <-got
}

// A future is completed without its lock by whoever answers, so that an answer races
// with a second one and with the timeout. The first half of this trap cannot run here:
// the race detector would fail the test, as it should. (An actor that responds twice
// to a RequestFuture shows it.) The kit's half runs under it.
func TestTrapFutureRaces(t *testing.T) {
	p := &probe{receive: func(l *Life, c actor.Context) {
		if n, ok := c.Message().(int); ok {
			to := c.Sender()
			c.Respond(n)
			c.Send(to, n+1)
			l.Go("again", func(context.Context) { l.Reply(to, n+2) })
		}
	}}
	tree := start(t, group("root", p.spec("a")))
	to := ref(t, tree, "a")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Microsecond)
				got, err := Ask[int](ctx, to, i)
				cancel()
				if err == nil && got != i {
					t.Errorf("asked %d, got %d", i, got)
				}
				if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrOverloaded) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// The dead-letter log prints messages.
func TestTrapDeadLettersShowContents(t *testing.T) {
	const secret = "hunter2"
	var mu sync.Mutex
	var out bytes.Buffer
	system := actor.NewActorSystem(
		actor.WithDeadLetterThrottleCount(1_000_000), actor.WithDeadLetterThrottleInterval(time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.NewTextHandler(&lockedWriter{&mu, &out}, nil))
		}))
	printed := func() string { mu.Lock(); defer mu.Unlock(); s := out.String(); out.Reset(); return s }
	printed()
	gone := system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	_ = system.Root.StopFuture(gone).Wait()
	system.Root.Send(gone, secret)
	if !strings.Contains(printed(), secret) {
		t.Error("the library has no trap here any more")
	}

	var kept *actor.PID
	self := make(chan *actor.PID, 1)
	p := &probe{close: func(l *Life, _ *Close) { l.Reply(kept, secret); l.ClosedWith(nil) }}
	p.receive = func(l *Life, c actor.Context) {
		switch c.Message() {
		case "self":
			self <- c.Self()
		case "keep":
			kept = c.Sender()
		case "spill":
			c.Respond(secret) // nobody asked
			l.Reply(kept, secret)
			l.Reply(kept, secret)
			c.Send(kept, secret)
			c.Send(gone, secret)
			c.Request(gone, secret)
			c.RequestWithCustomSender(gone, secret, gone)
			_ = c.RequestFuture(gone, secret, time.Minute).Wait()
			c.Forward(gone)
		}
	}
	never := p.spec("temp")
	never.Restart = Never
	tree := must2(Start(within(t), system, Spec{Name: "root", Group: &Group{Dynamic: true, Children: []Spec{p.spec("a")}}}))
	to := ref(t, tree, "a")
	_ = system.Root.RequestFuture(to.PID(), "keep", time.Millisecond).Wait() // gave up: a dead PID
	if err := Tell(to, "spill"); err != nil {
		t.Fatal(err)
	}
	must2(tree.Add(within(t), "root", plain("temp", nil)))
	temp := ref(t, tree, "temp").PID()
	if err := tree.Remove(within(t), "temp"); err != nil {
		t.Fatal(err)
	}
	old := p.current()
	sub := tree.Events(64)
	defer sub.Close()
	_ = Tell(to, "self")
	life := <-self
	must2(tree.Kill("a", Panic))
	next(t, sub, at[Opened]("a"))
	old.Tell(secret)
	old.Reply(kept, secret)
	for _, pid := range []*actor.PID{life, temp, must3(tree.Ref("nobody")).PID()} {
		system.Root.Send(actor.NewPID(pid.Address, pid.Id), secret)
		system.Root.Send(pid, secret)
		if _, err := system.Root.RequestFuture(pid, secret, limit).Result(); err != nil && !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
	}
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	pid := to.PID()
	system.Root.Send(actor.NewPID(pid.Address, pid.Id), secret)
	system.Root.Send(pid, secret)
	if got, err := system.Root.RequestFuture(pid, secret, limit).Result(); err != nil {
		t.Error(err)
	} else if e, ok := got.(error); !ok || !errors.Is(e, ErrUnavailable) {
		t.Errorf("a closed tree answers %v", got)
	}
	if s := printed(); strings.Contains(s, secret) {
		t.Errorf("printed:\n%s", s)
	} else if !strings.Contains(s, "Undelivered") && !strings.Contains(s, "{string}") && !strings.Contains(s, "string") {
		t.Errorf("nothing tells that something was not delivered:\n%s", s)
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// A stop is not waited for, and the future of one gives up after 10 s.
func TestTrapStopsAreNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := newSystem()
		release := make(chan struct{})
		props := actor.PropsFromFunc(func(c actor.Context) {
			if _, ok := c.Message().(string); ok {
				<-release
			}
		})
		pid := must2(system.Root.SpawnNamed(props, "x"))
		system.Root.Send(pid, "block")
		synctest.Wait()
		began := time.Now()
		system.Root.Stop(pid) // returns although it runs
		if _, err := system.Root.SpawnNamed(props, "x"); !errors.Is(err, actor.ErrNameExists) {
			t.Error("the stop was waited for")
		}
		if err := system.Root.StopFuture(pid).Wait(); !errors.Is(err, actor.ErrTimeout) || time.Since(began) != 10*time.Second {
			t.Errorf("the library has no trap here any more: %v after %s", err, time.Since(began))
		}
		close(release)
		time.Sleep(time.Minute) // of the bubble: the library has a timer running
	})

	// The kit: TestOldStopEndsBeforeNewStartBegins, TestStillRunning; and however long
	// it takes, it is waited for.
	clock := newClock()
	release := make(chan struct{})
	entered := make(chan struct{})
	p := &probe{receive: func(l *Life, c actor.Context) {
		if c.Message() == "block" {
			close(entered)
			<-release
		}
	}}
	tree := start(t, group("root", p.spec("a")), WithClock(clock))
	sub := tree.Events(64)
	defer sub.Close()
	_ = Tell(ref(t, tree, "a"), "block")
	<-entered
	p.current().Fail(errBoom)
	clock.timer(t, DefaultCloseWithin)
	clock.advance(time.Hour)
	if e := next(t, sub, at[StillRunning]("a")); !slices.Equal(e.What, []string{"receive"}) {
		t.Error(e)
	}
	if n := node(t, tree, "a"); n.Generation != 1 || n.State != StateStillRunning {
		t.Errorf("%+v", n)
	}
	close(release)
	next(t, sub, at[Opened]("a"))
}

// Too many failures only stop the child; whoever is above goes on without it.
func TestTrapOverLimitOnlyStopsTheChild(t *testing.T) {
	system := newSystem()
	above := make(chan any, 16)
	strategy := actor.NewOneForOneStrategy(1, time.Minute, actor.DefaultDecider)
	parent := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *actor.Started:
			c.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				if _, ok := c.Message().(*actor.Started); ok {
					panic("boom")
				}
			}))
		case *actor.Terminated:
			above <- m
		case *actor.Stopping, *actor.Restarting:
			above <- m
		case string:
			c.Respond(m)
		}
	}, actor.WithSupervisor(strategy)))
	if _, ok := (<-above).(*actor.Terminated); !ok {
		t.Error("not stopped")
	}
	if got, err := system.Root.RequestFuture(parent, "alive", limit).Result(); got != "alive" || err != nil || len(above) != 0 {
		t.Errorf("the library has no trap here any more: %v, %v", got, err)
	}
	_ = system.Root.StopFuture(parent).Wait()
	// The kit fails upward: TestBudget, TestExhaustedGroupFailsUpwardAndIsRestartedWithAFreshBudget.
}

// The library's exponential backoff grows linearly.
func TestTrapBackoffIsLinear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := newSystem()
		strategy := actor.NewExponentialBackoffStrategy(time.Hour, time.Second)
		restarts := make(restarts, 1)
		rs := actor.NewRestartStatistics()
		var delays []time.Duration
		for range 5 {
			began := time.Now()
			strategy.HandleFailure(system, restarts, actor.NewPID("x", "y"), rs, "boom", nil)
			delays = append(delays, (<-restarts).Sub(began).Round(time.Second))
		}
		s := time.Second
		if !slices.Equal(delays, []time.Duration{s, 2 * s, 3 * s, 4 * s, 5 * s}) {
			t.Errorf("the library has no trap here any more: %v", delays)
		}
	})
	// The kit: TestBackoff.
}

type restarts chan time.Time

func (r restarts) Children() []*actor.PID        { return nil }
func (r restarts) EscalateFailure(any, any)      {}
func (r restarts) RestartChildren(...*actor.PID) { r <- time.Now() }
func (r restarts) StopChildren(...*actor.PID)    {}
func (r restarts) ResumeChildren(...*actor.PID)  {}

// The stash gives back in reverse.
func TestTrapStashIsLIFO(t *testing.T) {
	system := newSystem()
	var got []int
	restarted := false
	pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *actor.Restarting:
			restarted = true
		case int:
			if restarted {
				got = append(got, m)
				return
			}
			c.Stash()
			if m == 3 {
				panic("restart me")
			}
		}
	}))
	for i := 1; i <= 3; i++ {
		system.Root.Send(pid, i)
	}
	// After the panic: wait for the restart to be through before stopping it.
	f := system.Root.RequestFuture(pid, &actor.Touch{}, limit)
	_ = f.Wait()
	_ = system.Root.PoisonFuture(pid).Wait()
	if !slices.Equal(got, []int{3, 2, 1}) {
		t.Errorf("the library has no trap here any more: %v", got)
	}

	// The kit: refused loudly, and nobody's answer is lost in it.
	p := &probe{receive: func(_ *Life, c actor.Context) {
		if _, ok := c.Message().(int); ok {
			c.Stash()
		}
	}}
	tree := start(t, group("root", p.spec("a")))
	sub := tree.Events(16)
	defer sub.Close()
	if _, err := Ask[int](within(t), ref(t, tree, "a"), 1); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if e := next(t, sub, at[Died]("a")); !strings.Contains(e.Cause.Error(), "Stash") {
		t.Error(e)
	}
}
