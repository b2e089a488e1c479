package callout

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/messages"
)

// intake joins connections to the queue group and takes them out of it again, so
// that whatever arrived on one is answered on that one. Where there is no group, they
// hear everything instead.
type intake struct {
	queue *connect.Queue[*arrival]
	plain *Once // nil for the queue group

	mu       sync.Mutex
	shutting bool
	// suspended keeps every connection out of the group for a while.
	suspended bool
	open      map[*broker.Conn]*link
}

func newIntake(plain *Once, queue *connect.Queue[*arrival]) *intake {
	return &intake{queue: queue, plain: plain, open: map[*broker.Conn]*link{}}
}

// link is one connection in the queue group.
type link struct {
	subscription *nats.Subscription // nil while the group was left
	confirm      *confirmer

	mu         sync.Mutex
	unanswered int
	left       bool          // nothing arrives on it any more
	empty      chan struct{} // closed once left with nothing unanswered
}

// arrival is one request as it was heard.
type arrival struct {
	message *nats.Msg
	link    *link
}

// done says that the arrival was answered, or never will be.
func (a *arrival) done() { a.link.count(-1) }

// confirmed returns when the server has worked off the answer, or the connection
// will not tell.
func (a *arrival) confirmed(ctx context.Context) { _ = a.link.confirm.wait(ctx) }

func (l *link) count(by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unanswered += by
	l.settle()
}

func (l *link) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = true
	l.settle()
}

// settle closes empty at most once: after leave nothing is added.
func (l *link) settle() {
	if l.left && l.unanswered == 0 {
		close(l.empty)
	}
}

// join takes a new connection, subscribes it unless the group was left, and returns
// when the server knows.
func (in *intake) join(ctx context.Context, conn *broker.Conn) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.shutting:
		return messages.ServiceClosing
	case in.suspended:
		in.open[conn] = &link{} // hears nothing
		return nil
	}
	l, err := in.subscribe(ctx, conn)
	if err != nil {
		return err
	}
	in.open[conn] = l
	return nil
}

// subscribe puts a connection into the group. The caller holds the lock.
func (in *intake) subscribe(ctx context.Context, conn *broker.Conn) (*link, error) {
	l := &link{empty: make(chan struct{})}
	l.confirm = newConfirmer(func(ctx context.Context) error { return flush(ctx, conn) })
	group := broker.CalloutQueue
	if in.plain != nil {
		group = ""
	}
	subscription, err := conn.NATS().QueueSubscribe(broker.CalloutSubject, group, func(m *nats.Msg) {
		if in.plain != nil && !in.plain.first(m.Reply) {
			return
		}
		l.count(1)
		in.queue.Put(&arrival{message: m, link: l})
	})
	if err != nil {
		return nil, err
	}
	subscription.SetClosedHandler(func(string) { l.leave() })
	if err := subscription.SetPendingLimits(-1, -1); err != nil { // the queue is the bound
		return nil, err
	}
	l.subscription = subscription
	return l, flush(ctx, conn)
}

// leave takes a connection out of the group and returns when everything that
// arrived on it is answered, or ctx ends.
func (in *intake) leave(ctx context.Context, conn *broker.Conn) {
	in.mu.Lock()
	l := in.open[conn]
	delete(in.open, conn)
	in.mu.Unlock()
	if l != nil {
		_ = l.drain(ctx) // the connection is closed next, whatever is left on it
	}
}

// shut takes every connection out of the group for good.
func (in *intake) shut(ctx context.Context) error {
	in.mu.Lock()
	in.shutting = true
	links := in.open
	in.open = map[*broker.Conn]*link{}
	in.mu.Unlock()
	for conn, l := range links {
		if err := l.drain(ctx); err != nil {
			return err
		}
		if err := flush(ctx, conn); err != nil && !conn.NATS().IsClosed() {
			return err
		}
	}
	return nil
}

// drain ends the subscription and waits for what it delivered.
func (l *link) drain(ctx context.Context) error {
	if l.subscription == nil {
		return nil
	}
	if err := l.subscription.Drain(); err != nil {
		return nil // the connection is gone, and with it who asked on it
	}
	select {
	case <-l.empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// flushWithin is how long a server may take to confirm what it was sent.
const flushWithin = 2 * time.Second

// flush returns when the server has seen everything that was sent on conn.
func flush(ctx context.Context, conn *broker.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	return conn.NATS().FlushWithContext(ctx)
}
