package supervisor_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/supervisor"
)

// holder takes questions and answers none.
type holder struct {
	life *supervisor.Life
	took chan<- struct{}
}

func (h *holder) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *supervisor.Open:
		h.life.Opened()
	case string:
		h.took <- struct{}{}
	case *supervisor.Close:
		h.life.ClosedWith(nil)
	}
}

// expiring is a context whose deadline passes when over is closed.
type expiring struct {
	context.Context
	over chan struct{}
}

func (e expiring) Deadline() (time.Time, bool) { return time.Now(), true }
func (e expiring) Done() <-chan struct{}       { return e.over }

func (e expiring) Err() error {
	select {
	case <-e.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Whoever asked a life that died is told whether it had seen the question.
func TestUnansweredIsToldFromUnseen(t *testing.T) {
	took := make(chan struct{}, 1)
	tree, err := supervisor.Start(t.Context(), newSystem(), supervisor.Spec{
		Name: "holder", New: func(l *supervisor.Life) actor.Actor { return &holder{l, took} },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tree.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	ref, _ := tree.Ref("holder")
	answer := make(chan error, 1)
	go func() {
		_, err := supervisor.Ask[int](t.Context(), ref, "hold this")
		answer <- err
	}()
	<-took
	events := tree.Events(16)
	defer events.Close()
	if _, err := tree.Kill("holder", supervisor.Panic); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; !errors.Is(err, supervisor.ErrUnanswered) || !errors.Is(err, supervisor.ErrUnavailable) {
		t.Errorf("seen: %v", err)
	}
	for e := range events.All(t.Context()) {
		if _, again := e.(supervisor.Opened); again {
			break
		}
	}
	// A deadline that passes while the question is with it says so too, one that had passed
	// before does not: nobody will see that question.
	late := expiring{t.Context(), make(chan struct{})}
	go func() {
		_, err := supervisor.Ask[int](late, ref, "hold this")
		answer <- err
	}()
	<-took
	close(late.over)
	if err := <-answer; !errors.Is(err, supervisor.ErrUnanswered) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("not answered in time: %v", err)
	}
	if _, err := supervisor.Ask[int](late, ref, "hold this"); errors.Is(err, supervisor.ErrUnanswered) || !errors.Is(err, supervisor.ErrUnavailable) {
		t.Errorf("asked too late: %v", err)
	}
	nobody, _ := tree.Ref("nobody")
	if _, err := supervisor.Ask[int](t.Context(), nobody, "hold this"); errors.Is(err, supervisor.ErrUnanswered) || !errors.Is(err, supervisor.ErrUnavailable) {
		t.Errorf("unseen: %v", err)
	}
}

// marker notes which questions it has seen, and answers one in three.
type marker struct {
	life *supervisor.Life
	seen *sync.Map
}

func (m *marker) Receive(ctx actor.Context) {
	switch q := ctx.Message().(type) {
	case *supervisor.Open:
		m.life.Opened()
	case int:
		m.seen.Store(q, true)
		switch q % 3 {
		case 0:
			ctx.Respond(q)
		case 1:
			m.life.Fail(errBoom)
		}
	case *supervisor.Close:
		m.life.ClosedWith(nil)
	}
}

// Who is not told that a question was seen can rely on it that it was not, however
// the death and the question fall together.
func TestUnseenIsUnseen(t *testing.T) {
	var seen sync.Map
	var current atomic.Pointer[supervisor.Life]
	tree := start(t, group("root", supervisor.Spec{Name: "marker", New: func(l *supervisor.Life) actor.Actor {
		current.Store(l)
		return &marker{l, &seen}
	}}), supervisor.WithRestart(never()))
	to := ref(t, tree, "marker")
	back := func() { // until it answers again
		for {
			if _, err := supervisor.Ask[int](t.Context(), to, -3); err == nil || t.Context().Err() != nil {
				return
			}
			runtime.Gosched()
		}
	}
	var askers, killer sync.WaitGroup
	stop := make(chan struct{})
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				current.Load().Fail(errBoom) // beside the actor, which may be about to receive
				back()
			}
		}
	})
	var answered, unanswered, unseen int
	var mu sync.Mutex
	for hand := range 8 {
		askers.Go(func() {
			for i := range 100 {
				q := hand*1000 + i
				_, err := supervisor.Ask[int](t.Context(), to, q)
				_, was := seen.Load(q)
				mu.Lock()
				switch {
				case err == nil:
					answered++
				case errors.Is(err, supervisor.ErrUnanswered):
					unanswered++
				default:
					if unseen++; was {
						t.Errorf("%d was seen: %v", q, err)
					}
				}
				mu.Unlock()
				if err != nil {
					back()
				}
			}
		})
	}
	askers.Wait()
	close(stop)
	killer.Wait()
	if answered == 0 || unanswered == 0 || unseen == 0 {
		t.Errorf("answered %d, unanswered %d, unseen %d", answered, unanswered, unseen)
	}
}
