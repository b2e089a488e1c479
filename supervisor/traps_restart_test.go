package supervisor_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	. "github.com/cotal-ai/authplane/supervisor"
)

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
