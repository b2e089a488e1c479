package supervisor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// Undelivered stands for a message that was sent to a PID that does not exist. The
// library prints what it cannot deliver; of what the kit's actors send it gets to
// see this instead.
type Undelivered struct{ Type string }

func (t *Tree) hand(to *actor.PID, message any, sender *actor.PID) {
	handTo(t.system, to, message, sender)
}

// handTo sends without ever letting the library's dead-letter process see the
// message: it asks the registry once and talks to the process it got.
func handTo(system *actor.ActorSystem, to *actor.PID, message any, sender *actor.PID) {
	process, ok := system.ProcessRegistry.Get(to)
	if !ok {
		message = Undelivered{Type: fmt.Sprintf("%T", message)}
	}
	if sender != nil {
		message = &actor.MessageEnvelope{Message: message, Sender: sender}
	}
	process.SendUserMessage(to, message)
}

// terminated tells a watcher.
func (t *Tree) terminated(watcher, who *actor.PID) {
	if p, ok := t.system.ProcessRegistry.Get(watcher); ok {
		p.SendSystemMessage(watcher, &actor.Terminated{Who: who})
	}
}
