package space_test

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/messages"
)

// counting tells of each gate that the reader is asked for.
func counting(reads chan<- struct{}) func(string) []actor.ReceiverMiddleware {
	return func(path string) []actor.ReceiverMiddleware {
		if path != "plane/reader" {
			return nil
		}
		return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
				if _, is := e.Message.(messages.ReadInstance); is {
					reads <- struct{}{}
				}
				next(c, e)
			}
		}}
	}
}
