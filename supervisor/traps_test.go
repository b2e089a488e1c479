package supervisor_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
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
