package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Client is the state of one life of an authority client. Its methods are called
// from the actor's Receive alone.
type Client struct {
	life     *supervisor.Life
	dialer   *broker.Dialer
	role     broker.Role
	use      broker.Use
	standing *broker.Standing
	hands    *hands
}

// New makes the client of one life. use is called as broker.Stand says.
func New(life *supervisor.Life, dialer *broker.Dialer, role broker.Role, use broker.Use) *Client {
	return &Client{life: life, dialer: dialer, role: role, use: use, hands: newHands(life)}
}

// connected tells the life that its first connection stands and was proved.
type connected struct{ standing *broker.Standing }

// Receive handles what every client receives, and reports whether it did. What it
// leaves is the client's own.
func (c *Client) Receive(message any) bool {
	switch m := message.(type) {
	case *supervisor.Open:
		c.life.Go("connect", c.connect)
	case connected:
		c.standing = m.standing
		c.life.Opened()
	case *supervisor.Drain:
		c.life.Drained(nil)
	case *supervisor.Close:
		standing := c.standing
		c.life.Go("close", func(ctx context.Context) { c.life.ClosedWith(end(ctx, standing)) })
	default:
		return false
	}
	return true
}

// connect opens and proves the first connection, then renews it for as long as
// the life lasts. Its failure is the life's.
func (c *Client) connect(ctx context.Context) {
	standing, err := c.dialer.Stand(ctx, c.role, c.hold, c.use)
	if err != nil {
		c.Fail(err)
		return
	}
	c.life.Tell(connected{standing})
	if err := standing.Run(ctx); err != nil {
		c.Fail(err)
	}
}

func (c *Client) hold(conn *broker.Conn) error { return c.life.Hold(conn) }

// end closes what was opened, if anything was.
func end(ctx context.Context, standing *broker.Standing) error {
	if standing == nil {
		return nil
	}
	return standing.Close(ctx)
}

// Serve works on one request beside Receive and answers to, with what do returns
// or with its error. The connection is not renewed away before do has returned.
func (c *Client) Serve(to *actor.PID, name string, do func(context.Context, *broker.Conn) (any, error)) {
	standing := c.standing
	taken := c.hands.give(func(ctx context.Context) {
		var answer any
		err := standing.With(func(conn *broker.Conn) (err error) {
			answer, err = do(ctx, conn)
			return err
		})
		if err != nil {
			answer = fmt.Errorf("%s: %w", name, err)
		}
		c.life.Reply(to, answer)
	})
	if !taken {
		c.life.Reply(to, messages.Busy)
	}
}

// Fail ends the life. What is nobody's fault here, a broker that is away or a
// stream that somebody changed under the running space, is marked as an outage: it
// is waited for, for ever, and counts for nothing. A stream that is not ours when
// the space starts is a failure like any other.
func (c *Client) Fail(err error) {
	if broker.IsAway(err) || Foreign(err) && c.life.Generation() > 1 {
		err = supervisor.Outage(err)
	}
	c.life.Fail(err)
}

// Foreign reports whether err says that the authority stream is not ours, or not
// any more.
func Foreign(err error) bool {
	return errors.Is(err, messages.StreamForeign) || errors.Is(err, messages.StreamDrifted)
}
