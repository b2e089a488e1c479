package world

import (
	"context"
	"slices"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// Leaves lists the actors that are no places of others.
func (w *World) Leaves() []messages.Actor {
	return slices.DeleteFunc(w.Space.Tree(), func(a messages.Actor) bool { return a.Generation == 0 || a.Group })
}

// Actor is one line of the tree as it is now.
func (w *World) Actor(path string) messages.Actor {
	for _, a := range w.Space.Tree() {
		if a.Path == path {
			return a
		}
	}
	w.Fatalf("no actor %s", path)
	return messages.Actor{}
}

// AwaitLife waits until an actor is open in a life not before generation.
func (w *World) AwaitLife(path string, generation uint64) {
	w.Helper()
	w.Await(path+" to live again", func() bool {
		a := w.Actor(path)
		return a.Generation >= generation && a.State == "open"
	})
}

// AwaitState waits until the space is in a state.
func (w *World) AwaitState(state messages.SpaceState) {
	w.Helper()
	w.Await("the space to be "+string(state), func() bool { return w.Space.Status().State == state })
}

// Await waits until something holds, looking again at every event of the tree.
func (w *World) Await(what string, holds func() bool) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events := w.Space.Events(ctx)
	deadline := time.After(Patience)
	for !holds() {
		select {
		case _, open := <-events:
			if !open && !holds() {
				w.Fatalf("waiting for %s: the tree has ended", what)
			}
		case <-deadline:
			w.Fatalf("waited %s for %s: %+v", Patience, what, w.Space.Tree())
		}
	}
}

// Poll waits until something holds that no event of the tree tells.
func (w *World) Poll(what string, holds func() bool) {
	w.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(Patience); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			w.Fatalf("waited %s for %s: %+v", Patience, what, w.Space.Status())
		}
	}
}
