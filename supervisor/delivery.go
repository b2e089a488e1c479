package supervisor

import (
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// A delivery is a message on its way to a life, with whoever waits for an answer.
type delivery struct {
	msg     any
	header  actor.ReadonlyMessageHeader
	ask     *ask        // a question asked through the kit, or nil
	sender  *actor.PID  // a sender outside the kit, or nil
	settled atomic.Bool // answered, or handed on to somebody else
	seen    atomic.Bool // handed to the actor
	own     bool        // from the life itself or for it alone: not counted against the capacity
	raw     bool        // for the library, not for the actor
}

// unwrap makes a delivery of what the library hands to a process or a mailbox.
func unwrap(message any) *delivery {
	d := &delivery{}
	if env, ok := message.(*actor.MessageEnvelope); ok {
		d.msg, d.sender = env.Message, env.Sender
		if env.Header != nil {
			d.header = env.Header
		}
	} else {
		d.msg = message
	}
	if _, ok := d.msg.(*actor.PoisonPill); ok {
		d.own, d.raw = true, true
	}
	return d
}

// awaited reports whether somebody still waits for an answer to d.
func (d *delivery) awaited() bool {
	switch {
	case d.settled.Load():
		return false
	case d.ask != nil:
		return d.ask.waiting()
	}
	return d.sender != nil
}

// refuse answers d with reason, and with ErrUnanswered if an actor has seen it: it may
// have been done.
func (d *delivery) refuse(t *Tree, reason error) {
	if d.seen.Load() {
		reason = fmt.Errorf("%w, %w", reason, ErrUnanswered)
	}
	d.answer(t, reason)
}

// answer settles d. Only the first answer counts.
func (d *delivery) answer(t *Tree, answer any) {
	if !d.settled.CompareAndSwap(false, true) {
		return
	}
	if d.ask != nil {
		d.ask.complete(answer)
	} else if d.sender != nil {
		t.hand(d.sender, answer, nil)
	}
}
