package supervisor

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// receiver makes what hands the current message to the leaf: directly, or through
// its middleware.
func (c *leafContext) receiver() func() {
	if c.life.tree.set.middleware == nil {
		return c.receive
	}
	chain := actor.ReceiverFunc(func(_ actor.ReceiverContext, e *actor.MessageEnvelope) { c.Receive(e) })
	for _, m := range slices.Backward(c.life.tree.set.middleware(c.life.Path())) {
		chain = m(chain)
	}
	return func() { chain(c, c.envelope()) }
}

func (c *leafContext) receive() {
	c.inner.Receive(c)
	if c.current == nil {
		return
	}
	if auto, ok := c.current.msg.(actor.AutoRespond); ok {
		c.current.answer(c.life.tree, auto.GetAutoResponse(c))
	}
}

// Receive hands what a middleware made of the current message to the leaf.
func (c *leafContext) Receive(e *actor.MessageEnvelope) {
	before := c.shown
	c.shown = e
	defer func() { c.shown = before }()
	c.receive()
}

// envelope is the current message as a middleware sees it.
func (c *leafContext) envelope() *actor.MessageEnvelope {
	e := &actor.MessageEnvelope{Message: c.Message(), Sender: c.Sender()}
	header := c.MessageHeader()
	for _, key := range header.Keys() {
		e.SetHeader(key, header.Get(key))
	}
	return e
}
