package operations

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// finishWithin is how long the work of a call may go on when its space closes.
const finishWithin = 2 * time.Second

// call is the one life of a call's actor.
type call struct {
	life  *supervisor.Life
	calls *Calls
	job   Job
	place *place
	held  *held

	conn *broker.Conn // nil until it is open
	// stop ends the work, and worked is closed when it has ended; both are nil before it
	// began.
	stop   context.CancelFunc
	worked chan struct{}
	// closing says that it was asked to end.
	closing atomic.Bool
}

type opened struct{ conn *broker.Conn }

// Receive answers what the job is asked.
func (c *call) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *supervisor.Open:
		c.life.Go("connect", c.connect)
	case opened:
		c.conn = m.conn
		c.life.Opened()
	case *supervisor.Drain:
		c.life.Drained(nil)
	case *supervisor.Close:
		if !c.closing.Swap(true) {
			end := c.end(m)
			c.life.Go("close", func(ctx context.Context) {
				end(ctx)
				c.life.ClosedWith(nil)
			})
		}
	default:
		if reflect.TypeOf(m) == reflect.TypeOf(c.job.Ask) {
			c.begin(ctx.Sender())
		}
	}
}

// connect opens the one connection of this life, makes sure of what is behind it, and ends the life with it.
func (c *call) connect(ctx context.Context) {
	defer c.place.leave()
	conn, err := c.calls.config.Dialer.Dial(ctx, c.job.Role, func(conn *broker.Conn) error {
		c.held.Store(conn)
		return c.life.Hold(conn)
	})
	if err == nil && c.job.Prove != nil {
		err = c.job.Prove(ctx, conn)
	}
	if err != nil {
		c.fail(err)
		return
	}
	c.life.Tell(opened{conn})
	select {
	case <-conn.Lost():
		if !c.closing.Load() {
			c.fail(conn.Err())
		}
		<-ctx.Done()
	case <-ctx.Done():
	}
}

func (c *call) fail(err error) {
	if broker.IsAway(err) {
		err = supervisor.Outage(err)
	}
	c.life.Fail(err)
}

// begin works on the one thing that this actor is asked for.
func (c *call) begin(to *actor.PID) {
	if c.worked != nil || c.closing.Load() {
		c.life.Reply(to, messages.ServiceClosing)
		return
	}
	ctx, stop := context.WithTimeout(c.life.Context(), workWithin)
	worked := make(chan struct{})
	c.stop, c.worked = stop, worked
	at := Site{Conn: c.conn, life: c.life}
	c.life.Go("work", func(context.Context) {
		defer close(worked)
		defer stop()
		answer, err := c.job.Do(ctx, at)
		switch {
		case err == nil:
			c.life.Reply(to, answer)
		case errors.Is(ctx.Err(), context.Canceled): // it was asked to end
			c.life.Reply(to, messages.ServiceClosing.From(err))
		default:
			c.life.Reply(to, err)
		}
	})
}

// end returns what ends this life in order. When the space closes, the work has a
// moment to finish, and who came before ends before.
func (c *call) end(m *supervisor.Close) func(context.Context) {
	conn, stop, worked := c.conn, c.stop, c.worked
	return func(ctx context.Context) {
		limited, cancel := context.WithDeadline(ctx, m.Deadline)
		defer cancel()
		shutdown := m.Why == supervisor.Shutdown
		if worked != nil {
			if shutdown {
				finished(limited, worked, min(finishWithin, time.Until(m.Deadline)/2))
			}
			stop()
			finished(limited, worked, time.Until(m.Deadline))
		}
		if shutdown {
			c.place.awaitTurn(limited)
		}
		if conn == nil {
			return // what is being dialled ends with the life
		}
		if conn.Close(limited) != nil { // nothing hangs on what was buffered: every write is answered
			conn.Sever()
		}
		<-conn.Ended()
	}
}

// finished waits for the end of the work, for no longer than within.
func finished(ctx context.Context, worked <-chan struct{}, within time.Duration) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-worked:
	case <-timer.C:
	case <-ctx.Done():
	}
}
