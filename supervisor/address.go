package supervisor

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// An address is the place of one leaf. It is a process of the library's, registered
// once, under a name that no life ever has, and hands what it gets to the current
// life's mailbox.
//
// A PID with a request id is the address of one life only (its generation): what
// comes for it when that life is over is dropped.
type address struct {
	tree *Tree
	path string
	pid  *actor.PID

	// buried is the last generation of an earlier child at this path: generations go
	// on from there, so that no late message and no name finds the wrong life.
	buried uint64

	route atomic.Pointer[route]

	unavailable error
	overloaded  error
	closing     error

	mu       sync.Mutex
	watchers []*actor.PID
	ended    bool
	rejected uint64    // not yet told in an event
	told     time.Time // when the last event was
}

// A route says where messages go now.
type route struct {
	life   *Life // nil: nowhere
	closed error // why others than the life itself are refused; nil when it is open
}

// refusalInterval spaces the events about refused messages of one address.
const refusalInterval = 250 * time.Millisecond

func newAddress(t *Tree, path string) *address {
	a := &address{
		tree:        t,
		path:        path,
		unavailable: refusal(path, ErrUnavailable),
		overloaded:  refusal(path, ErrOverloaded),
		closing:     refusal(path, ErrClosing),
	}
	a.route.Store(&route{closed: a.unavailable})
	registry := t.system.ProcessRegistry
	a.pid = registryPID(registry, t.prefix+"/"+path)
	bucket := registry.LocalPIDs.GetBucket(a.pid.Id)
	if old, ok := bucket.Get(a.pid.Id); ok {
		if grave, ok := old.(*tombstone); ok {
			a.buried = grave.generation
		}
	}
	bucket.Set(a.pid.Id, actor.Process(a))
	return a
}

func registryPID(registry *actor.ProcessRegistryValue, id string) *actor.PID {
	return &actor.PID{Address: registry.Address, Id: id}
}

type refused struct {
	path string
	kind error
}

func (e *refused) Error() string { return e.path + ": " + e.kind.Error() }
func (e *refused) Unwrap() error { return e.kind }

func refusal(path string, kind error) error { return &refused{path, kind} }

// deliver hands d to the open life, or says why not. In the second case nobody but
// the caller answers.
func (a *address) deliver(d *delivery) error {
	r := a.route.Load()
	err := r.closed
	if err == nil {
		if err = r.life.mailbox.post(d); err == nil {
			return nil
		}
		if err == ErrOverloaded {
			err = a.overloaded
		}
	}
	a.reject(err)
	return err
}

// reject counts a refusal, and tells of it once in a while.
func (a *address) reject(reason error) {
	now := a.tree.set.clock.Now()
	a.mu.Lock()
	a.rejected++
	if now.Sub(a.told) < refusalInterval {
		a.mu.Unlock()
		return
	}
	n := a.rejected
	a.rejected, a.told = 0, now
	a.mu.Unlock()
	a.tree.emit(RejectedMessage{Origin: a.tree.origin(a.path, 0), Count: n, Reason: reason})
}

// set changes the route.
func (a *address) set(l *Life, closed error) { a.route.Store(&route{life: l, closed: closed}) }

// leave ends the route to l, if it still is l.
func (a *address) leave(l *Life, closed error) {
	for {
		r := a.route.Load()
		if r.life != l || a.route.CompareAndSwap(r, &route{closed: closed}) {
			return
		}
	}
}

// life returns the life that pid means, or nil when it is over.
func (a *address) life(pid *actor.PID) *Life {
	l := a.route.Load().life
	if l == nil || pid.RequestId != 0 && pid.RequestId != uint32(l.generation) {
		return nil
	}
	return l
}

var _ actor.Process = (*address)(nil)

// SendUserMessage comes from outside the kit.
func (a *address) SendUserMessage(pid *actor.PID, message any) {
	d := unwrap(message)
	var err error
	switch l := a.life(pid); {
	case d.raw && l == nil:
		return
	case pid.RequestId == 0 && !d.raw:
		err = a.deliver(d)
	case l == nil:
		err = a.unavailable
	default:
		d.own = true
		err = l.mailbox.post(d)
	}
	if err != nil {
		d.answer(a.tree, err)
	}
}

// SendSystemMessage serves watchers and refuses the rest.
func (a *address) SendSystemMessage(pid *actor.PID, message any) {
	switch m := message.(type) {
	case *actor.Watch:
		a.watch(pid, m.Watcher)
	case *actor.Unwatch:
		a.unwatch(pid, m.Watcher)
	case *actor.Stop, *actor.Restart:
		a.Stop(pid)
	}
}

// Stop is a death of the current life.
func (a *address) Stop(pid *actor.PID) {
	if l := a.life(pid); l != nil {
		l.die(ErrStopped)
	}
}

func (a *address) watch(pid, watcher *actor.PID) {
	taken := false
	if pid.RequestId != 0 {
		if l := a.life(pid); l != nil {
			taken = l.watch(watcher)
		}
	} else {
		a.mu.Lock()
		if taken = !a.ended; taken {
			a.watchers = append(a.watchers, watcher)
		}
		a.mu.Unlock()
	}
	if !taken {
		a.tree.terminated(watcher, pid)
	}
}

func (a *address) unwatch(pid, watcher *actor.PID) {
	if pid.RequestId != 0 {
		if l := a.life(pid); l != nil {
			l.unwatch(watcher)
		}
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchers = without(a.watchers, watcher)
}

// end tells the watchers that this place is gone.
func (a *address) end(closed error) {
	a.set(nil, closed)
	a.mu.Lock()
	watchers := a.watchers
	a.watchers, a.ended = nil, true
	a.mu.Unlock()
	for _, w := range watchers {
		a.tree.terminated(w, a.pid)
	}
}

func without(list []*actor.PID, pid *actor.PID) []*actor.PID {
	for i, p := range list {
		if p.Equal(pid) {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// A tombstone stands in the registry where an address was, so that a message to it
// is answered instead of being printed by the library's dead-letter log.
type tombstone struct {
	system     *actor.ActorSystem
	generation uint64 // the last one that lived here
}

var _ actor.Process = (*tombstone)(nil)

func (s *tombstone) SendUserMessage(_ *actor.PID, message any) {
	if _, _, sender := actor.UnwrapEnvelope(message); sender != nil {
		handTo(s.system, sender, ErrUnavailable, nil)
	}
}

func (s *tombstone) SendSystemMessage(pid *actor.PID, message any) {
	if m, ok := message.(*actor.Watch); ok {
		if p, ok := s.system.ProcessRegistry.Get(m.Watcher); ok {
			p.SendSystemMessage(m.Watcher, &actor.Terminated{Who: pid})
		}
	}
}

func (s *tombstone) Stop(*actor.PID) {}
