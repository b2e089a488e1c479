package run

import (
	"context"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

const (
	// ObservedFor is how long a request that was seen counts.
	ObservedFor = 5 * time.Minute
	// AwaitedFor is how long one is waited for that was not seen yet: what a server on the
	// other side of a cluster delivers comes in no order with anything else.
	AwaitedFor = 2 * time.Second
	// maxObserved is how many are remembered: the oldest go first. One takes about 200
	// bytes.
	maxObserved = 1 << 16
)

// Observations are the requests that were seen being published: digests, no payloads. It
// is safe for concurrent use. They are lost with the process, so that whoever asks again
// after that must be answered from what is recorded.
type Observations struct {
	now func() time.Time

	mu      sync.Mutex
	seen    map[messages.AwaitRequest]time.Time
	order   []messages.AwaitRequest // as they came; those before next are gone
	next    int
	waiting map[messages.AwaitRequest][]chan struct{} // closed once it is seen
}

// NewObservations has seen nothing. now is the clock; nil is the system's.
func NewObservations(now func() time.Time) *Observations {
	if now == nil {
		now = time.Now
	}
	return &Observations{now: now, seen: map[messages.AwaitRequest]time.Time{}, waiting: map[messages.AwaitRequest][]chan struct{}{}}
}

// See takes note of a request. One that is published again counts anew.
func (o *Observations) See(what messages.AwaitRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.seen[what]; !known {
		o.order = append(o.order, what)
	}
	now := o.now()
	o.seen[what] = now
	for _, w := range o.waiting[what] {
		close(w)
	}
	delete(o.waiting, what)
	o.forget(now)
}

// forget drops what is too old, or too much, in the order in which it came. One that was
// seen again keeps those behind it a little longer.
func (o *Observations) forget(now time.Time) {
	for o.next < len(o.order) {
		oldest := o.order[o.next]
		old := now.Sub(o.seen[oldest]) >= ObservedFor
		if !old && len(o.order)-o.next <= maxObserved {
			break
		}
		delete(o.seen, oldest)
		o.order[o.next] = messages.AwaitRequest{}
		o.next++
	}
	if o.next > maxObserved {
		o.order, o.next = append([]messages.AwaitRequest(nil), o.order[o.next:]...), 0
	}
}

// Await is Observed: it returns once the request was seen, at the latest AwaitedFor from
// now.
func (o *Observations) Await(ctx context.Context, what messages.AwaitRequest) error {
	seen := o.look(what)
	if seen == nil {
		return nil
	}
	defer o.leave(what, seen)
	timer := time.NewTimer(AwaitedFor)
	defer timer.Stop()
	select {
	case <-seen:
		return nil
	case <-timer.C:
		return messages.RunUnwitnessed.Because("nobody saw it published")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// look is nil if the request was seen, and otherwise closed when it is.
func (o *Observations) look(what messages.AwaitRequest) chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at, known := o.seen[what]; known && o.now().Sub(at) < ObservedFor {
		return nil
	}
	seen := make(chan struct{}) // closed, never sent to
	o.waiting[what] = append(o.waiting[what], seen)
	return seen
}

func (o *Observations) leave(what messages.AwaitRequest, seen chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	left := o.waiting[what][:0]
	for _, w := range o.waiting[what] {
		if w != seen {
			left = append(left, w)
		}
	}
	if len(left) == 0 {
		delete(o.waiting, what)
		return
	}
	o.waiting[what] = left
}

// Remembered counts what is remembered, and Waiting who waits.
func (o *Observations) Remembered() (seen, waiting int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.seen), len(o.waiting)
}
