package callout

import (
	"context"
	"slices"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/messages"
)

// begun keeps account of the decisions under way, so that somebody who has just
// changed what they rest on can wait for those that may not have seen it.
type begun struct {
	mu    sync.Mutex
	now   *cohort
	older []*cohort // those before now that are not empty yet
}

// cohort is the decisions that began between two settlings.
type cohort struct {
	open   int
	closed bool          // nobody joins any more
	empty  chan struct{} // closed once closed and nobody is left (capacity 0)
}

func (c *cohort) settle() {
	if c.closed && c.open == 0 {
		close(c.empty)
	}
}

func newBegun() *begun { return &begun{now: &cohort{empty: make(chan struct{})}} }

// decision counts one in, before it reads anything; the result counts it out, once
// the server has its answer or there will be none.
func (b *begun) decision() (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.now
	c.open++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		c.open--
		c.settle()
	}
}

// settled returns when every decision that had begun before the call has ended.
func (b *begun) settled(ctx context.Context) error {
	for _, c := range b.turn() {
		select {
		case <-c.empty:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// turn begins a new cohort and returns those before it that are not empty.
func (b *begun) turn() []*cohort {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.now
	b.now = &cohort{empty: make(chan struct{})}
	last.closed = true
	last.settle()
	b.older = slices.DeleteFunc(append(b.older, last), func(c *cohort) bool { return c.open == 0 })
	return slices.Clone(b.older)
}

// settle answers SettleDecisions: it returns when every decision that had begun is
// answered, and the servers have the answers, with the connections they went over.
// A connection that was renewed meanwhile has been worked off by then.
func (r *responder) settle(ctx context.Context) (messages.Settled, error) {
	if err := r.begun.settled(ctx); err != nil {
		return messages.Settled{}, messages.BrokerAway.From(err)
	}
	var out messages.Settled
	for _, conn := range r.intake.connections() {
		if err := flush(ctx, conn); err != nil {
			return messages.Settled{}, messages.BrokerAway.From(err)
		}
		if tuple, named := conn.Tuple(); named {
			out.Connections = append(out.Connections, messages.ConnectionRef{ServerID: tuple.ServerID, ClientID: tuple.ClientID})
		}
	}
	return out, nil
}

// connections are those that connects may be answered over.
func (in *intake) connections() []*broker.Conn {
	in.mu.Lock()
	defer in.mu.Unlock()
	var all []*broker.Conn
	for conn := range in.open {
		all = append(all, conn)
	}
	return all
}
