package supervisor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/supervisor"
)

// Who follows a tree without a limit is let go when the tree has ended, after the
// last event.
func TestASubscriptionEndsWithItsTree(t *testing.T) {
	tree, err := supervisor.Start(within(t), newSystem(), supervisor.Spec{
		Name: "leaf", New: func(l *supervisor.Life) actor.Actor { return &holder{l, nil} },
	})
	if err != nil {
		t.Fatal(err)
	}
	sub := tree.Events(16)
	followed := make(chan supervisor.Event, 16)
	go func() {
		defer close(followed)
		for e := range sub.All(context.Background()) {
			followed <- e
		}
	}()
	if err := tree.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	var last supervisor.Event
	for e := range followed {
		last = e
	}
	if _, closed := last.(supervisor.Closed); !closed {
		t.Errorf("the last event was %v", last)
	}
	if _, err := sub.Next(context.Background()); !errors.Is(err, supervisor.ErrUnsubscribed) {
		t.Errorf("afterwards: %v", err)
	}
}
