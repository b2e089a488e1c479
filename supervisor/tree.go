package supervisor

import (
	"context"
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// A Tree is a running tree. Its methods may be called from any goroutine; those that
// wait may not be called inside Receive.
type Tree struct {
	system  *actor.ActorSystem
	root    *actor.RootContext // not the host's: that one may have middleware
	set     settings
	prefix  string // of every name this tree has in the actor system
	nobody  *actor.PID
	asks    *asks
	hub     hub
	custody *Custody
	crown   *group // the hidden group whose only child is the root
	top     *seat

	addresses sync.Map // path -> *address
	seats     sync.Map // path -> *seat

	mu     sync.Mutex
	open   bool // Start has returned it
	cause  error
	failed chan struct{}
	flight *closeFlight
	closed bool
	graves []*actor.PID // of addresses that are gone, oldest first
}

// keptGraves bounds how many addresses of removed children keep a tombstone.
const keptGraves = 1024

// Start opens root, a group or a leaf, on a system that may be anybody's: its
// configuration is not touched. It returns when everything is open. When something
// fails to open, or ctx ends, what was opened is unwound and the error says what
// failed and what of the unwinding failed. Outages are retried until ctx ends.
func Start(ctx context.Context, system *actor.ActorSystem, root Spec, opts ...Option) (*Tree, error) {
	if err := validate(root, false); err != nil {
		return nil, err
	}
	t := newTree(system, root, opts)
	if _, err := t.crown.open(ctx); err != nil {
		t.retire()
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = true
	return t, nil
}

func newTree(system *actor.ActorSystem, root Spec, opts []Option) *Tree {
	t := &Tree{
		system: system,
		root:   actor.NewRootContext(system, nil),
		set:    defaults(),
		prefix: root.Name + system.ProcessRegistry.NextId(),
		failed: make(chan struct{}),
	}
	for _, o := range opts {
		o(&t.set)
	}
	t.custody = newCustody(t.set.clock, t.resourceEvent)
	t.hub.over = t.custody.Complete() // the end of a resource is told before it counts
	t.asks = &asks{id: t.prefix + "/ask$"}
	pid, _ := system.ProcessRegistry.Add(t.asks, t.asks.id)
	t.asks.addr = pid.Address
	t.nobody, _ = system.ProcessRegistry.Add(&tombstone{system: system}, t.prefix+"/nobody$")
	t.crown = &group{tree: t, spec: &Group{}, path: root.Name}
	t.top = t.build(t.crown, root, false)
	t.crown.kids = []*seat{t.top}
	return t
}

// build makes the seat of a child and of everything below it.
func (t *Tree) build(parent *group, s Spec, added bool) *seat {
	k := &seat{tree: t, parent: parent, spec: s, path: s.Name, added: added, state: StateClosed, next: StateClosed}
	if parent.seat != nil && parent.seat != t.top {
		k.path = parent.path + "/" + s.Name
	}
	k.since = t.set.clock.Now()
	if s.Group == nil {
		a := newAddress(t, k.path)
		t.addresses.Store(k.path, a)
		k.generation = a.buried
		k.body = &leaf{seat: k, addr: a}
	} else {
		g := &group{seat: k, tree: t, spec: s.Group, path: k.path}
		if parent == t.crown {
			t.top = k
		}
		k.body = g
		for _, below := range s.Group.Children {
			g.kids = append(g.kids, t.build(g, below, false))
		}
	}
	t.seats.Store(k.path, k)
	return k
}

// bury takes a child that was removed out of the indexes. A tombstone stays in the
// registry, for the last few.
func (t *Tree) bury(k *seat) {
	t.seats.CompareAndDelete(k.path, k)
	switch b := k.body.(type) {
	case *group:
		for _, below := range b.children() {
			t.bury(below)
		}
	case *leaf:
		t.addresses.CompareAndDelete(k.path, b.addr)
		t.entomb(b, b.addr.unavailable)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.graves = append(t.graves, b.addr.pid)
		if len(t.graves) > keptGraves {
			t.dig(t.graves[0])
			t.graves = t.graves[1:]
		}
	}
}

// entomb replaces an address in the registry, without a moment in which a message
// would go to the library's dead letters.
func (t *Tree) entomb(lf *leaf, closed error) {
	id := lf.addr.pid.Id
	_, generation := lf.seat.current()
	grave := &tombstone{system: t.system, generation: generation}
	t.system.ProcessRegistry.LocalPIDs.GetBucket(id).Set(id, actor.Process(grave))
	lf.addr.end(closed)
}

// dig removes a tombstone, unless the path is in use again.
func (t *Tree) dig(pid *actor.PID) {
	bucket := t.system.ProcessRegistry.LocalPIDs.GetBucket(pid.Id)
	bucket.RemoveCb(pid.Id, func(_ string, v any, exists bool) bool {
		_, grave := v.(*tombstone)
		return exists && grave
	})
}

// retire takes a tree that is closed out of the registry. Tombstones of its leaves
// stay for as long as the system lives.
func (t *Tree) retire() {
	t.seats.Range(func(_, v any) bool {
		if lf, ok := v.(*seat).body.(*leaf); ok {
			t.entomb(lf, lf.addr.closing)
		}
		return true
	})
	for _, r := range t.custody.all() {
		go sever(r) // Custody.Complete waits for its end
	}
	t.custody.seal()
}

func (t *Tree) address(path string) *address {
	if v, ok := t.addresses.Load(path); ok {
		return v.(*address)
	}
	return nil
}

func (t *Tree) seat(path string) *seat {
	if v, ok := t.seats.Load(path); ok {
		return v.(*seat)
	}
	return nil
}

// Ref returns the place with an absolute path, and whether there is a leaf now.
func (t *Tree) Ref(path string) (Ref, bool) {
	return Ref{t, path}, t.address(path) != nil
}

// Custody returns the inventory of resources.
func (t *Tree) Custody() *Custody { return t.custody }

// Events subscribes to everything that happens from now on. The subscription keeps
// up to buffer events that were not read.
func (t *Tree) Events(buffer int) *Subscription { return t.hub.subscribe(buffer) }

// Failed is closed when the tree has failed upward: a restart budget is exhausted,
// or a child whose death escalates died. What is open stays open until Close.
func (t *Tree) Failed() <-chan struct{} { return t.failed }

// Err returns why the tree failed; nil while it has not.
func (t *Tree) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// Cause is Err, or else the last error of the root.
func (t *Tree) Cause() error {
	if err := t.Err(); err != nil {
		return err
	}
	return t.top.node().LastError
}

// State returns the state of the root, or StateFailed once the tree has failed and
// does not close yet.
func (t *Tree) State() State {
	state, _ := t.top.current()
	if t.Err() != nil && state != StateClosing && state != StateClosed {
		return StateFailed
	}
	return state
}

func (t *Tree) fail(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		t.cause = cause
		close(t.failed)
	}
}

// Snapshot lists every child, the root first, each group before its children.
func (t *Tree) Snapshot() []Node {
	var out []Node
	var walk func(*seat)
	walk = func(k *seat) {
		out = append(out, k.node())
		if g, ok := k.body.(*group); ok {
			for _, below := range g.children() {
				walk(below)
			}
		}
	}
	walk(t.top)
	return out
}

// Kill ends the current life of a leaf in one of several ways, for fault injection.
// It returns as soon as that is under way. A life may be killed in any phase, opening
// and closing included. ErrNoSuchActor: there is no such path. ErrNotApplicable: it
// is a group, has no life now, or holds nothing that could be severed.
func (t *Tree) Kill(path string, how How) (Killed, error) {
	k := t.seat(path)
	if k == nil {
		return Killed{}, refusal(path, ErrNoSuchActor)
	}
	lf, ok := k.body.(*leaf)
	if !ok {
		return Killed{}, refusal(path, ErrNotApplicable)
	}
	l := lf.life()
	if l == nil || l.ended() {
		return Killed{}, refusal(path, ErrNotApplicable)
	}
	done := Killed{Path: path, Generation: l.generation}
	switch how {
	case Panic:
		l.mailbox.urge(&delivery{msg: killMessage{}, own: true})
	case Stop:
		if !l.stop() { // not spawned yet
			l.die(ErrStopped)
		}
	case Disconnect:
		resources := t.custody.of(path, l.generation)
		if len(resources) == 0 {
			return Killed{}, refusal(path, ErrNotApplicable)
		}
		for _, r := range resources {
			go sever(r) // Custody.Complete waits for its end
		}
	default:
		return Killed{}, fmt.Errorf("%s: %w: %v", path, ErrNotApplicable, how)
	}
	return done, nil
}
