package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
)

// ErrSevered is the cause of a loss that Sever brought about.
var ErrSevered = errors.New("the connection was severed")

// flushLimit bounds the flush of a close whose context has no nearer deadline.
const flushLimit = 2 * time.Second

// Conn is one connection in one role. Its owner closes it; custody may watch it
// and sever it. All methods are safe for concurrent use.
type Conn struct {
	id, label  string
	subject    string // the user's public nkey
	generation uint64
	lostAfter  time.Duration
	sockets    *sockets
	nc         *nats.Conn

	// lost is closed once the connection is of no more use, ended once nothing of it
	// is left. Both carry no value: capacity 0.
	lost, ended chan struct{}

	mu       sync.Mutex
	err      error       // why it was lost
	grace    *time.Timer // runs while disconnected
	wasLost  bool
	isClosed bool // the client said so
	hasEnded bool
	pins     pins
	kickable bool
}

func newConn(cfg Config, role Role, u *user, generation uint64) *Conn {
	c := &Conn{
		id: u.id, label: role.label(cfg.Space), subject: u.subject, generation: generation, lostAfter: cfg.LostAfter, kickable: role.kickable(),
		lost: make(chan struct{}), ended: make(chan struct{}),
	}
	c.sockets = &sockets{open: cfg.Open, timeout: cfg.ConnectTimeout, freed: c.settle, live: map[*socket]struct{}{}}
	return c
}

// adopt takes over the connection that now stands. From here on it may reconnect
// for as long as it lives, whatever becomes of the context of the dial.
func (c *Conn) adopt(nc *nats.Conn) {
	c.nc = nc
	c.sockets.setBound(context.Background())
}

// NATS is the client to speak with. Nobody but the owner closes it, and only
// through Close.
func (c *Conn) NATS() *nats.Conn { return c.nc }

// ID names this connection and no other; its inbox is derived from it.
func (c *Conn) ID() string { return c.id }

// User is the public nkey that it is connected with: its own, and no other
// connection's, unless the role has a listed one.
func (c *Conn) User() string { return c.subject }

// Label is the role's name, as the server and custody show it: cotal:<role>:<space>.
func (c *Conn) Label() string { return c.label }

// Generation counts the connections of a Standing, from 1.
func (c *Conn) Generation() uint64 { return c.generation }

// ServerID is the id of the server it is connected to, empty while disconnected.
func (c *Conn) ServerID() string { return c.nc.ConnectedServerId() }

// ClientID is the server's number for it, 0 while disconnected.
func (c *Conn) ClientID() uint64 {
	id, err := c.nc.GetClientID()
	if err != nil || !c.nc.IsConnected() {
		return 0
	}
	return id
}

// Reconnects counts how often it came back after a disconnect. Whatever was proved
// over it before the last one is void.
func (c *Conn) Reconnects() uint64 { return c.nc.Stats().Reconnects }

// Lost is closed once the connection is closed, or has been disconnected for more
// than a second. It does not end by itself then: the owner still closes it.
func (c *Conn) Lost() <-chan struct{} { return c.lost }

// Ended is closed once the connection has finally ended: the client is closed and
// no socket of it is open.
func (c *Conn) Ended() <-chan struct{} { return c.ended }

// Err says why the connection was lost; nil while it is not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close flushes what is buffered, closes, and waits until the connection has
// ended. The error names the label: what was buffered did not reach a server that
// still is there, or the end did not come within the context. A connection that was
// lost, before or meanwhile, is only waited for. Closing again is allowed.
func (c *Conn) Close(ctx context.Context) error {
	flushed := c.flush(ctx)
	if flushed != nil {
		c.sockets.cut()
	}
	c.nc.Close()
	select {
	case <-c.ended:
	case <-ctx.Done():
		return fmt.Errorf("close %s: it has not ended: %w", c.label, errors.Join(ctx.Err(), flushed))
	}
	if flushed != nil {
		return fmt.Errorf("close %s: what was buffered may not have reached the server: %w", c.label, away(flushed))
	}
	return nil
}

// flush sends what is buffered, if there is anybody to send it to: while
// disconnected nothing is ever buffered.
func (c *Conn) flush(ctx context.Context) error {
	if !c.nc.IsConnected() || c.sockets.severed() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	err := c.nc.FlushWithContext(limited)
	if c.sockets.severed() || !c.nc.IsConnected() {
		return nil // cut meanwhile, by somebody who meant it or with the server
	}
	return err
}

// Sever cuts the connection as if its cable were cut: what is buffered is dropped,
// nobody is told, and it never comes back. Lost and Ended follow. It does not
// block on the network.
func (c *Conn) Sever() {
	c.sockets.cut()
	c.lose(ErrSevered)
	c.nc.Close()
}

// disconnected starts the second within which it must be back.
func (c *Conn) disconnected(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wasLost || c.grace != nil {
		return
	}
	c.grace = time.AfterFunc(c.lostAfter, func() {
		c.lose(messages.BrokerAway.From(fmt.Errorf("disconnected for more than %v (%w)", c.lostAfter, orUnknown(cause))))
	})
}

func (c *Conn) reconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopGrace()
}

// closed is the client's last word.
func (c *Conn) closed(nc *nats.Conn) {
	c.mu.Lock()
	c.isClosed = true
	c.stopGrace()
	c.mu.Unlock()
	c.lose(fmt.Errorf("closed (%v)", orUnknown(nc.LastError())))
	c.settle()
}

func (c *Conn) stopGrace() {
	if c.grace != nil {
		c.grace.Stop()
		c.grace = nil
	}
}

// lose declares the connection of no more use; the first reason stands.
func (c *Conn) lose(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wasLost {
		return
	}
	c.wasLost = true
	c.err = fmt.Errorf("%s: connection lost: %w", c.label, cause)
	close(c.lost)
}

// settle declares the end once the client is closed and no socket is open.
func (c *Conn) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed && !c.hasEnded && c.sockets.none() {
		c.hasEnded = true
		close(c.ended)
	}
}

func orUnknown(err error) error {
	if err == nil {
		return errors.New("no cause given")
	}
	return err
}
