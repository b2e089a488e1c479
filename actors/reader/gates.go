package reader

import (
	"slices"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
)

// Gates tell who waits for it that the gate of an instance may have moved, over all
// lives of the reader. That is a nudge to read it, and never evidence. The zero value
// is ready, and safe for concurrent use.
type Gates struct {
	mu      sync.Mutex
	waiting map[string][]chan struct{} // by key
}

// Watch returns a channel that gets a value when the gate may have moved since it was
// read last; leave stops watching.
func (g *Gates) Watch(endpoint, instance string) (moved <-chan struct{}, leave func()) {
	key := ledger.InstanceKey(endpoint, instance)
	w := make(chan struct{}, 1) // one nudge that is not taken yet stands for any number
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == nil {
		g.waiting = map[string][]chan struct{}{}
	}
	g.waiting[key] = append(g.waiting[key], w)
	return w, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		rest := slices.DeleteFunc(g.waiting[key], func(other chan struct{}) bool { return other == w })
		if g.waiting[key] = rest; len(rest) == 0 {
			delete(g.waiting, key)
		}
	}
}

// nudge wakes who waits for a key.
func (g *Gates) nudge(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wake(g.waiting[key])
}

// nudgeAll wakes everybody: what was written while nobody listened was not heard.
func (g *Gates) nudgeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, waiting := range g.waiting {
		wake(waiting)
	}
}

func wake(waiting []chan struct{}) {
	for _, w := range waiting {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// listen passes on what the stream repeats of the gates over a new connection.
func (r *reader) listen(conn *broker.Conn) error {
	prefix := len(r.config.Stream.Changed(""))
	_, err := conn.NATS().Subscribe(r.config.Stream.Changed(ledger.AllInstances), func(m *nats.Msg) {
		r.config.Gates.nudge(m.Subject[prefix:])
	})
	return err
}
