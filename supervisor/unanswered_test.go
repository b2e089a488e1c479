package supervisor_test

import (
	"errors"
	"testing"

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
	nobody, _ := tree.Ref("nobody")
	if _, err := supervisor.Ask[int](t.Context(), nobody, "hold this"); errors.Is(err, supervisor.ErrUnanswered) || !errors.Is(err, supervisor.ErrUnavailable) {
		t.Errorf("unseen: %v", err)
	}
}
