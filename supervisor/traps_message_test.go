package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	. "github.com/cotal-ai/authplane/supervisor"
)

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
