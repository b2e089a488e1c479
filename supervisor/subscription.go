package supervisor

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// ErrUnsubscribed is what Next returns when nothing more will come.
var ErrUnsubscribed = errors.New("subscription closed")

// A Subscription receives the events of a tree from the moment it was made. Who
// reads too slowly loses the oldest and is told how many by a Missed. One
// goroutine reads; Close may be called from any.
type Subscription struct {
	hub *hub

	mu     sync.Mutex
	ring   []Event // bounded by size
	size   int
	missed uint64
	ready  chan struct{} // capacity 1: there is something to read
	done   chan struct{}
	once   sync.Once
}

// Next waits for the next event. It fails when ctx ends, or with ErrUnsubscribed
// once everything kept has been read of a subscription that is closed, or whose tree
// has closed with everything it ever held.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok := s.take(); ok {
			return e, nil
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.done:
			return s.last()
		case <-s.hub.over:
			return s.last()
		}
	}
}

// All yields events until ctx ends or Next would fail.
func (s *Subscription) All(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for {
			e, err := s.Next(ctx)
			if err != nil || !yield(e) {
				return
			}
		}
	}
}

// last is what was kept when nothing more can come.
func (s *Subscription) last() (Event, error) {
	if e, ok := s.take(); ok {
		return e, nil
	}
	return nil, ErrUnsubscribed
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.once.Do(func() {
		s.hub.remove(s)
		close(s.done)
	})
}

func (s *Subscription) take() (Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.missed > 0 {
		e := Missed{Origin: Origin{At: s.ring[0].Where().At}, Count: s.missed}
		s.missed = 0
		return e, true
	}
	if len(s.ring) == 0 {
		return nil, false
	}
	e := s.ring[0]
	s.ring[0] = nil
	s.ring = s.ring[1:]
	return e, true
}

func (s *Subscription) put(e Event) {
	s.mu.Lock()
	if len(s.ring) == s.size {
		s.ring[0] = nil
		s.ring = s.ring[1:]
		s.missed++
	}
	s.ring = append(s.ring, e)
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// hub hands events to the subscriptions.
type hub struct {
	over <-chan struct{} // closed when the last event of the tree was handed out

	mu   sync.RWMutex
	subs map[*Subscription]struct{}
}

func (h *hub) subscribe(size int) *Subscription {
	if size < 1 {
		size = 1
	}
	s := &Subscription{hub: h, size: size, ready: make(chan struct{}, 1), done: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = map[*Subscription]struct{}{}
	}
	h.subs[s] = struct{}{}
	return s
}

func (h *hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, s)
}

func (h *hub) publish(e Event) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.subs {
		s.put(e)
	}
}

// origin is a convenience for the many places that make events.
func (t *Tree) origin(path string, generation uint64) Origin {
	return Origin{Path: path, Generation: generation, At: t.set.clock.Now()}
}

func (t *Tree) since(at time.Time) time.Duration { return t.set.clock.Now().Sub(at) }
