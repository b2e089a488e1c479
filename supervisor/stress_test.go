package supervisor_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	. "github.com/cotal-ai/authplane/supervisor"
)

// never gives up, so that constant kills are no reason to fail.
func never() RestartConfig {
	c := DefaultRestart()
	c.Limit, c.Base, c.Cap = 0, time.Microsecond, time.Microsecond
	return c
}

// Every one of 100,000 questions is answered while the actors that answer them are
// killed all the time, in every way there is.
func TestNoAskHangsUnderConstantKills(t *testing.T) {
	total, askers := 100_000, 64
	if testing.Short() {
		total = 10_000
	}
	deferred := &probe{receive: func(l *Life, c actor.Context) {
		switch c.Message().(type) {
		case int:
			to := c.Sender()
			n := c.Message()
			l.Go("answer", func(context.Context) { l.Reply(to, n) })
		case boom:
			panic(errBoom)
		}
	}}
	system := newSystem()
	system.EventStream.Subscribe(func(e any) {
		if dead, ok := e.(*actor.DeadLetterEvent); ok {
			t.Errorf("dead letter: a %T to %s", dead.Message, dead.PID)
		}
	})
	tree := startOn(t, system, group("root", plain("a", nil), deferred.spec("b"), plain("c", nil)), WithRestart(never()))
	paths := []string{"a", "b", "c"}

	stop := make(chan struct{})
	var killer sync.WaitGroup
	var kills, answered, refused atomic.Uint64
	killer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if i%7 == 0 {
				_ = Tell(ref(t, tree, paths[i%3]), boom{})
			} else if _, err := tree.Kill(paths[i%3], How(i%2)); err == nil {
				kills.Add(1)
			}
			for answered.Load() < uint64(i*20) { // let some through between two kills
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		}
	})

	var wg sync.WaitGroup
	for range askers {
		wg.Go(func() {
			for i := 0; answered.Load()+refused.Load() < uint64(total) || answered.Load() < uint64(total)/25; i++ {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				got, err := Ask[int](ctx, ref(t, tree, paths[rand.IntN(3)]), i)
				cancel()
				switch {
				case err == nil && got == i:
					answered.Add(1)
				case errors.Is(err, context.DeadlineExceeded):
					t.Errorf("a question hung: %v", err)
				case errors.Is(err, ErrUnavailable), errors.Is(err, ErrOverloaded):
					refused.Add(1)
				default:
					t.Errorf("asked %d, got %d, %v", i, got, err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	killer.Wait()
	t.Logf("answered %d, refused %d, kills %d", answered.Load(), refused.Load(), kills.Load())
	if kills.Load() == 0 || refused.Load() == 0 || answered.Load() == 0 {
		t.Fatal("nothing was tried")
	}
}
