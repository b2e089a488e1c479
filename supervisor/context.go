package supervisor

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// errStash is the death of a leaf that stashes: the library would give stashed
// messages back in reverse, and only at a restart of its own, which never happens.
var errStash = errors.New("Stash is not offered: keep the message in a field")

// leafContext is the actor.Context that a leaf sees. It differs from the library's
// where that one would lose an answer, show a message to the dead-letter log, or give
// away the PID of a life, which must never be used for long.
type leafContext struct {
	actor.Context
	life    *Life
	inner   actor.Actor
	current *delivery              // nil while the library itself speaks
	shown   *actor.MessageEnvelope // what a middleware handed on, or nil
}

// Self returns the address of this life alone: what arrives there after its end is
// dropped. Life.Self().PID() is the stable address.
func (c *leafContext) Self() *actor.PID { return c.life.private }

// Parent returns nil: a leaf talks to its group through its Life.
func (c *leafContext) Parent() *actor.PID { return nil }

// Actor returns the leaf.
func (c *leafContext) Actor() actor.Actor { return c.inner }

// Logger returns Life.Log.
func (c *leafContext) Logger() *slog.Logger { return c.life.Log() }

func (c *leafContext) Message() any {
	if c.shown != nil {
		return c.shown.Message
	}
	if c.current != nil {
		return c.current.msg
	}
	return c.Context.Message()
}

func (c *leafContext) MessageHeader() actor.ReadonlyMessageHeader {
	if c.shown != nil && c.shown.Header != nil {
		return c.shown.Header
	}
	if c.current != nil && c.current.header != nil {
		return c.current.header
	}
	return actor.EmptyMessageHeader
}

// Sender returns who waits for an answer. It may be kept and answered later with
// Life.Reply.
func (c *leafContext) Sender() *actor.PID {
	switch d := c.current; {
	case d == nil:
		return nil
	case d.ask != nil:
		return c.life.tree.asks.name(d.ask)
	default:
		return d.sender
	}
}

// Respond answers the current message. A second answer, and one that nobody waits
// for, are dropped.
func (c *leafContext) Respond(answer any) {
	if c.current != nil {
		c.current.answer(c.life.tree, answer)
	}
}

// Forward hands the current message and the duty to answer it to somebody else.
func (c *leafContext) Forward(to *actor.PID) {
	d := c.current
	if d == nil || !d.settled.CompareAndSwap(false, true) {
		return
	}
	t := c.life.tree
	next := &delivery{msg: d.msg, header: d.header, ask: d.ask, sender: d.sender}
	next.seen.Store(true) // by this actor
	if process, ok := t.system.ProcessRegistry.Get(to); ok {
		if a, ok := process.(*address); ok && a.tree == t {
			if err := a.deliver(next); err != nil {
				next.refuse(t, err)
			}
			return
		}
	} else {
		next.refuse(t, ErrUnavailable)
		return
	}
	t.hand(to, d.msg, c.senderOf(d))
}

func (c *leafContext) senderOf(d *delivery) *actor.PID {
	if d.ask != nil {
		return c.life.tree.asks.name(d.ask)
	}
	return d.sender
}

// Stash ends the life; see errStash.
func (c *leafContext) Stash() { panic(errStash) }

func (c *leafContext) Send(to *actor.PID, message any) { c.life.tree.hand(to, message, nil) }

func (c *leafContext) Request(to *actor.PID, message any) {
	c.life.tree.hand(to, message, c.life.private)
}

func (c *leafContext) RequestWithCustomSender(to *actor.PID, message any, sender *actor.PID) {
	c.life.tree.hand(to, message, sender)
}

// RequestFuture is the library's. Prefer Ask inside Life.Go.
func (c *leafContext) RequestFuture(to *actor.PID, message any, limit time.Duration) *actor.Future {
	f := actor.NewFuture(c.life.tree.system, limit)
	c.life.tree.hand(to, message, f.PID())
	return f
}

// ReenterAfter runs then inside the actor, with the message that was current.
func (c *leafContext) ReenterAfter(f *actor.Future, then func(res any, err error)) {
	d, e := c.current, c.shown
	c.Context.ReenterAfter(f, func(res any, err error) {
		if c.life.ended() {
			return
		}
		c.current, c.shown = d, e
		defer func() { c.current, c.shown = nil, nil }()
		c.life.guard("continuation", func() { then(res, err) })
	})
}

// guard runs f and turns a panic in it into the death of the life.
func (l *Life) guard(where string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			l.die(&PanicError{Value: v, Where: where, Stack: debug.Stack()})
		}
	}()
	f()
}
