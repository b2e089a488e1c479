package space

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/messages"
)

// door is the space as an actor of the embedding program's system: it can be
// asked how the space is, and watched, since it stops when the space has really
// ended. It is no part of the tree and holds nothing.
type door struct{ h *Handle }

// Receive answers GetStatus with Status and GetTree with Tree, from memory.
func (d *door) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case messages.GetStatus:
		ctx.Respond(d.h.Status())
	case messages.GetTree:
		ctx.Respond(messages.Tree{Actors: d.h.Tree()})
	}
}
