package connect

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// Decisions are worth making for DecisionBudget after a request arrived. The server
// waits 2 s by default, and a client gives up in the same time: what is left is
// what the answer needs on its way.
const DecisionBudget = 1200 * time.Millisecond

// QueueConfig says how long and how much a Queue keeps.
type QueueConfig[T any] struct {
	// Capacity is how many items wait at most; default 4,096. When one more comes,
	// the oldest is shed.
	Capacity int
	// Budget is how long an item may be worked on, counted from its arrival; default
	// DecisionBudget.
	Budget time.Duration
	// Need is what working on an item takes: one with less left is shed. Default 20 ms.
	Need time.Duration
	// LateAfter is the wait of the oldest item from which on the newest goes first;
	// default a quarter of Budget. In time, order is fair; late, serving the oldest
	// would only make every item late.
	LateAfter time.Duration
	// Now is the clock, and must be monotonic; default time.Now.
	Now func() time.Time
	// Shed is told, outside the queue's lock, of each item that is not handed out,
	// and why: messages.TooLate, messages.Busy, or messages.ServiceClosing for what
	// is put after Close. It runs on the goroutine of Put or Take and must be quick.
	Shed func(item T, why messages.Error)
}

// Queue holds what waits for a decision. Put never blocks. An item is handed out
// once or shed once, never both.
type Queue[T any] struct {
	c    QueueConfig[T]
	wake chan struct{} // capacity 1: one pending hint that there is something to take
	done chan struct{} // closed by Close

	mu     sync.Mutex
	closed bool
	ring   []stamped[T]
	first  int
	count  int
}

type stamped[T any] struct {
	item    T
	arrived time.Time
}

// NewQueue makes an empty queue. It starts no goroutine.
func NewQueue[T any](c QueueConfig[T]) *Queue[T] {
	c.Capacity = max(cmp.Or(c.Capacity, 4096), 1)
	c.Budget = cmp.Or(c.Budget, DecisionBudget)
	c.Need = cmp.Or(c.Need, 20*time.Millisecond)
	c.LateAfter = cmp.Or(c.LateAfter, c.Budget/4)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Shed == nil {
		c.Shed = func(T, messages.Error) {}
	}
	return &Queue[T]{c: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// Put stamps an item as having arrived now and queues it.
func (q *Queue[T]) Put(item T) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		q.c.Shed(item, messages.ServiceClosing)
		return
	}
	now := q.c.Now()
	late := q.popLate(now)
	var oldest stamped[T]
	full := q.count == q.c.Capacity
	if full {
		oldest = q.popFirst()
	}
	q.pushLast(stamped[T]{item, now})
	q.mu.Unlock()
	q.hint()
	q.shed(late)
	if full {
		q.c.Shed(oldest.item, messages.Busy)
	}
}

// Take waits for an item that can still be in time, and says until when. It fails
// with the cause of ctx, or with messages.ServiceClosing once the queue is closed
// and empty.
func (q *Queue[T]) Take(ctx context.Context) (item T, deadline time.Time, err error) {
	for {
		got, ok, late, closed := q.next()
		q.shed(late)
		switch {
		case ok:
			return got.item, got.arrived.Add(q.c.Budget), nil
		case closed:
			return item, deadline, messages.ServiceClosing
		}
		select {
		case <-q.wake:
		case <-q.done:
		case <-ctx.Done():
			return item, deadline, context.Cause(ctx)
		}
	}
}

// Close lets nothing in any more. What is in is still handed out.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.done)
	}
}

// Len is how many items wait, those not yet found to be late included.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

// next removes what is too late, and then what is to be worked on, if there is any.
func (q *Queue[T]) next() (got stamped[T], ok bool, late []T, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.c.Now()
	late = q.popLate(now)
	if q.count > 0 {
		ok = true
		if now.Sub(q.ring[q.first].arrived) >= q.c.LateAfter {
			got = q.popLast()
		} else {
			got = q.popFirst()
		}
	}
	if q.count > 0 {
		q.hint() // for the next taker
	}
	return got, ok, late, q.closed
}

// popLate removes the items, all at the front, that can no longer be in time.
func (q *Queue[T]) popLate(now time.Time) (late []T) {
	for q.count > 0 && now.Sub(q.ring[q.first].arrived) > q.c.Budget-q.c.Need {
		late = append(late, q.popFirst().item)
	}
	return late
}

func (q *Queue[T]) shed(late []T) {
	for _, item := range late {
		q.c.Shed(item, messages.TooLate)
	}
}

// hint wakes one taker. A hint that is already pending is enough: who takes it
// passes it on while there is more.
func (q *Queue[T]) hint() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Queue[T]) popFirst() stamped[T] {
	got := q.ring[q.first]
	q.ring[q.first] = stamped[T]{} // keeps nothing alive
	q.first = (q.first + 1) % len(q.ring)
	q.count--
	return got
}

func (q *Queue[T]) popLast() stamped[T] {
	last := (q.first + q.count - 1) % len(q.ring)
	got := q.ring[last]
	q.ring[last] = stamped[T]{}
	q.count--
	return got
}

func (q *Queue[T]) pushLast(s stamped[T]) {
	if q.count == len(q.ring) {
		q.grow()
	}
	q.ring[(q.first+q.count)%len(q.ring)] = s
	q.count++
}

// grow doubles the ring, up to the capacity, so that an idle queue stays small.
func (q *Queue[T]) grow() {
	ring := make([]stamped[T], min(max(2*len(q.ring), 64), q.c.Capacity))
	n := copy(ring, q.ring[q.first:])
	copy(ring[n:], q.ring[:q.first])
	q.ring, q.first = ring, 0
}
