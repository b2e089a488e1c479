package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	. "github.com/cotal-ai/authplane/supervisor"
)

// foreign is an actor of the host that asks what it is told to and reports what it
// receives.
func foreign(system *actor.ActorSystem) (*actor.PID, chan any) {
	got := make(chan any, 16)
	return system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case func(actor.Context):
			m(c)
		case *actor.Started, *actor.Stopping, *actor.Stopped:
		default:
			got <- m
		}
	})), got
}

func TestForeignActorsTalkToAStableAddress(t *testing.T) {
	system := newSystem()
	p := &probe{receive: func(_ *Life, c actor.Context) {
		switch m := c.Message().(type) {
		case int:
			c.Respond(m)
		case boom:
			panic("boom")
		}
	}}
	s := p.spec("a")
	s.Mailbox = 1
	tree := must2(Start(within(t), system, group("root", s)))
	sub := tree.Events(64)
	defer sub.Close()
	defer func() { _ = tree.Close(within(t)) }()
	pid := ref(t, tree, "a").PID()
	host, got := foreign(system)
	request := func(m any) {
		system.Root.Send(host, func(c actor.Context) { c.Request(pid, m) })
	}
	request(1)
	if v := <-got; v != 1 {
		t.Fatal(v)
	}
	request(boom{})
	if err, ok := (<-got).(error); !ok || !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	next(t, sub, at[Opened]("a"))
	request(2) // the same PID, the next life
	if v := <-got; v != 2 {
		t.Fatal(v)
	}
	if v, err := system.Root.RequestFuture(pid, &actor.Touch{}, limit).Result(); err != nil {
		t.Fatal(err)
	} else if _, ok := v.(*actor.Touched); !ok {
		t.Fatal(v)
	}
}

func TestForeignRequestIsAnsweredWhenTheMailboxIsFullOrTheLifeEnds(t *testing.T) {
	system := newSystem()
	entered, release := make(chan struct{}), make(chan struct{})
	p := &probe{receive: func(_ *Life, c actor.Context) {
		if c.Message() == 0 {
			close(entered)
			<-release
		}
	}}
	s := p.spec("a")
	s.Mailbox = 1
	tree := must2(Start(within(t), system, group("root", s)))
	defer func() { _ = tree.Close(within(t)) }()
	pid := ref(t, tree, "a").PID()
	host, got := foreign(system)
	ask := func(m any) { system.Root.RequestWithCustomSender(pid, m, host) }
	ask(0)
	<-entered
	ask(1)
	ask(2)
	if err, _ := (<-got).(error); !errors.Is(err, ErrOverloaded) {
		t.Fatal(err)
	}
	p.current().Fail(errBoom)
	for range 2 { // the one it worked on, and the one that waited
		if err, _ := (<-got).(error); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	}
	close(release)
}

func TestWatchers(t *testing.T) {
	system := newSystem()
	p := &probe{}
	selves := make(chan *actor.PID, 1)
	p.receive = func(_ *Life, c actor.Context) {
		if c.Message() == "self" {
			selves <- c.Self()
		}
	}
	tree := must2(Start(within(t), system, group("root", p.spec("a"))))
	sub := tree.Events(64)
	defer sub.Close()
	pid := ref(t, tree, "a").PID()
	_ = Tell(ref(t, tree, "a"), "self")
	self := <-selves
	host, got := foreign(system)
	do := func(f func(actor.Context)) {
		done := make(chan struct{})
		system.Root.Send(host, func(c actor.Context) { f(c); close(done) })
		<-done
	}
	do(func(c actor.Context) { c.Watch(pid); c.Watch(self) })
	p.current().Fail(errBoom)
	if m, ok := (<-got).(*actor.Terminated); !ok || !m.Who.Equal(self) {
		t.Fatalf("%v", m)
	}
	next(t, sub, at[Opened]("a"))
	do(func(c actor.Context) { c.Watch(self) }) // over long ago
	if m, ok := (<-got).(*actor.Terminated); !ok || !m.Who.Equal(self) {
		t.Fatalf("%v", m)
	}
	do(func(c actor.Context) { c.Unwatch(pid); c.Watch(pid) })
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if m, ok := (<-got).(*actor.Terminated); !ok || !m.Who.Equal(pid) {
		t.Fatalf("%v", m)
	}
	do(func(c actor.Context) { c.Watch(actor.NewPID(pid.Address, pid.Id)) }) // closed long ago
	if m, ok := (<-got).(*actor.Terminated); !ok || !m.Who.Equal(pid) {
		t.Fatalf("%v", m)
	}
	if len(got) != 0 {
		t.Fatalf("%v", <-got)
	}
}

// Requests from outside that are never answered do not pile up for ever.
func TestUnansweredForeignRequestsAreBounded(t *testing.T) {
	system := newSystem()
	p := &probe{receive: func(*Life, actor.Context) {}}
	tree := must2(Start(within(t), system, group("root", p.spec("a"))))
	defer func() { _ = tree.Close(within(t)) }()
	refused := make(chan struct{}, 1)
	host := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if err, ok := c.Message().(error); ok && errors.Is(err, ErrOverloaded) {
			select {
			case refused <- struct{}{}:
			default:
			}
		}
	}))
	pid := ref(t, tree, "a").PID()
	for range 40_000 {
		system.Root.RequestWithCustomSender(pid, 1, host)
	}
	wait(t, refused, "the oldest to be told")
	if n := node(t, tree, "a"); n.InFlight > 3*8192 {
		t.Fatalf("%d in flight", n.InFlight)
	}
}

// Two trees of one name, and a restart of one, in one system do not meet.
func TestTwoTreesInOneSystem(t *testing.T) {
	system := newSystem()
	spec := group("root", plain("a", nil))
	t1, t2 := must2(Start(within(t), system, spec)), must2(Start(within(t), system, spec))
	sub := t1.Events(64)
	defer sub.Close()
	must2(t1.Kill("a", Panic))
	next(t, sub, at[Opened]("a"))
	if err := t1.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if must2(Ask[uint64](within(t), ref(t, t2, "a"), "who")) != 1 {
		t.Fatal("the other tree was touched")
	}
	if err := t2.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestKillWhileOpening(t *testing.T) {
	for _, how := range []How{Panic, Stop} {
		t.Run(how.String(), func(t *testing.T) {
			kill := func(l *Life) { must2(l.Tree().Kill("a", how)) }
			p := &probe{open: kill}
			want := map[How]error{Panic: ErrKilled, Stop: ErrStopped}[how]
			if _, err := open(t, group("root", plain("b", nil), p.spec("a"))); !errors.Is(err, want) {
				t.Fatalf("the first open: %v", err)
			}
			tries := 0
			p = &probe{}
			tree := start(t, group("root", p.spec("a")), WithRestart(never()))
			sub := tree.Events(64)
			defer sub.Close()
			p.open = func(l *Life) {
				if tries++; tries == 1 {
					kill(l)
					return
				}
				l.Opened()
			}
			p.current().Fail(errBoom)
			next(t, sub, func(e Opened) bool { return e.Path == "a" && e.Generation == 3 })
		})
	}
}

func TestCloseIsNotForATreeThatStarts(t *testing.T) {
	var got error
	p := &probe{open: func(l *Life) {
		l.Go("close", func(ctx context.Context) { got = l.Tree().Close(ctx); l.Opened() })
	}}
	start(t, group("root", p.spec("a")))
	if !errors.Is(got, ErrNotApplicable) {
		t.Fatal(got)
	}
}

// Two ends of one duty: 64 goroutines asking one actor get on, and none waits long for
// the others.
func TestManyAskersShareAnActorFairly(t *testing.T) {
	tree := start(t, group("root", plain("a", nil)))
	to := ref(t, tree, "a")
	worst := make(chan time.Duration, 64)
	for range 64 {
		go func() {
			var longest time.Duration
			for i := range 200 {
				began := time.Now()
				if got, err := Ask[int](context.Background(), to, i); got != i || err != nil {
					t.Error(got, err)
				}
				longest = max(longest, time.Since(began))
			}
			worst <- longest
		}()
	}
	var longest time.Duration
	for range 64 {
		longest = max(longest, <-worst)
	}
	if longest > 2*time.Second {
		t.Errorf("one waited %s", longest)
	}
	t.Logf("longest wait %s", longest)
}
