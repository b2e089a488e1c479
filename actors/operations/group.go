package operations

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/supervisor"
)

// Name of the group, which is also its path.
const Name = "operations"

const (
	// callWithin bounds a call. Its connection lives for a minute.
	callWithin = 55 * time.Second
	// workWithin leaves time to answer.
	workWithin = 50 * time.Second
	// removeWithin is more than the close of a call's actor takes.
	removeWithin = 2 * supervisor.DefaultCloseWithin
)

// Config is what the calls need.
type Config struct {
	Dialer *broker.Dialer
	// Stream says which authority stream, and Remembered which life of it is ours.
	Stream     stream.Config
	Remembered func() stream.Installation
	// Lanes bounds the batches that this process has open.
	Lanes *stream.Lanes
	// Closing is closed when the space closes: from then on that ends the calls' actors.
	Closing <-chan struct{}
}

// Calls are the calls of one space, over all lives of the group.
type Calls struct {
	config Config
	count  atomic.Uint64
	order  order
}

// New takes what the calls need.
func New(config Config) *Calls { return &Calls{config: config} }

// Spec describes the group as a child of its space.
func Spec() supervisor.Spec {
	return supervisor.Spec{Name: Name, Restart: supervisor.Escalate, Group: &supervisor.Group{Dynamic: true}}
}

// held is the connection of a call, once it has one.
type held struct{ atomic.Pointer[broker.Conn] }

// end closes the actor of a call, whatever becomes of its caller. One that died is
// gone already, and how one died over its close is told by the tree's events. One that
// does not end has its connection cut, and ends of that.
func (c *Calls) end(tree *supervisor.Tree, name string, h *held) {
	select {
	case <-c.config.Closing:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
	defer cancel()
	path := Name + "/" + name
	if conn := h.Load(); tree.Remove(ctx, path) != nil && conn != nil {
		conn.Sever()
		<-conn.Ended()
		_ = tree.Remove(ctx, path) // what does not end even so the close of the space names
	}
}
