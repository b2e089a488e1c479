package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// A Life is one life of a leaf, from its New to its end. All its methods may be
// called from any goroutine, and do nothing that matters once the life is over.
type Life struct {
	tree       *Tree
	seat       *seat
	leaf       *leaf
	addr       *address
	generation uint64
	mailbox    *mailbox
	private    *actor.PID                // the address of this life alone
	pid        atomic.Pointer[actor.PID] // the library's; nil until it is spawned
	ctx        context.Context
	cancel     context.CancelCauseFunc
	log        *slog.Logger

	opened  chan struct{} // closed by Opened
	drained chan error    // capacity 1: the latest answer to Drain
	refused chan error    // capacity 1: the latest refusal to close
	over    chan struct{} // closed when the life is over
	stopped chan struct{} // closed when the actor has stopped
	gone    chan struct{} // closed when nothing of the life is left

	dead atomic.Bool // it is over; set before anything is answered because of that

	mu       sync.Mutex
	phase    lifePhase
	cause    error // why it is over; nil after an orderly close
	orderly  bool
	diedIn   Phase
	asked    bool // a Drain is unanswered
	closing  bool // a Close is unanswered
	label    string
	tasks    map[uint64]string
	lastTask uint64
	idle     chan struct{} // closed when it is over and no task runs
	watchers []*actor.PID
}

type lifePhase uint8

const (
	lifeOpening lifePhase = iota
	lifeOpen
	lifeDraining
	lifeClosing
	lifeOver
)

func (lf *leaf) newLife(generation uint64) *Life {
	t := lf.seat.tree
	l := &Life{
		tree:       t,
		seat:       lf.seat,
		leaf:       lf,
		addr:       lf.addr,
		generation: generation,
		private:    &actor.PID{Address: lf.addr.pid.Address, Id: lf.addr.pid.Id, RequestId: uint32(generation)},
		opened:     make(chan struct{}),
		drained:    make(chan error, 1),
		refused:    make(chan error, 1),
		over:       make(chan struct{}),
		stopped:    make(chan struct{}),
		gone:       make(chan struct{}),
		idle:       make(chan struct{}),
		tasks:      map[uint64]string{},
		log:        t.set.logger.With("actor", lf.seat.path, "generation", generation),
	}
	l.mailbox = newMailbox(t, lf.seat.spec.mailbox(), l.die)
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// run spawns the actor and sends it what a life begins with.
func (l *Life) run(first ...any) {
	l.addr.set(l, l.addr.unavailable)
	props := actor.PropsFromProducer(func() actor.Actor { return &shell{life: l} },
		actor.WithMailbox(func() actor.Mailbox { return l.mailbox }),
		actor.WithSupervisor(lifeStrategy{l}))
	name := fmt.Sprintf("%s/%s$%d", l.tree.prefix, l.seat.path, l.generation)
	pid, err := l.tree.root.SpawnNamed(props, name)
	if err != nil {
		l.die(err)
		close(l.stopped)
	} else {
		l.pid.Store(pid)
	}
	for _, msg := range first {
		l.tell(msg)
	}
	go l.keep() // ends with the life, which the leaf waits for
}

// Path returns the absolute path of the leaf.
func (l *Life) Path() string { return l.seat.path }

// Generation returns the number of this life, from 1.
func (l *Life) Generation() uint64 { return l.generation }

// Self returns the leaf's place in the tree, which outlives this life.
func (l *Life) Self() Ref { return Ref{l.tree, l.seat.path} }

// Ref returns the place with an absolute path, whether there is a child now or not.
func (l *Life) Ref(path string) Ref { return Ref{l.tree, path} }

// Tree returns the tree. It is complete only when Start has returned: until then
// only its Custody, Events, Snapshot and Add may be used.
func (l *Life) Tree() *Tree { return l.tree }

// Context is cancelled when the life is over.
func (l *Life) Context() context.Context { return l.ctx }

// Log returns a logger that names the leaf and its generation.
func (l *Life) Log() *slog.Logger { return l.log }

// Opened says that the leaf is open: from now on messages from others reach it.
func (l *Life) Opened() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.opened:
		return
	default:
	}
	if l.phase != lifeOpening {
		return
	}
	l.phase = lifeOpen
	l.addr.set(l, nil)
	close(l.opened)
}

// Drained answers Drain. An error is reported by the close that asked; the leaf goes
// on living, and is asked again if the close is retried.
func (l *Life) Drained(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked && l.phase != lifeOver {
		l.asked = false
		replace(l.drained, err)
	}
}

// ClosedWith answers Close. With nil the life is over. With an error marked Terminal
// it is over as well and the error is reported once. With any other error the leaf
// refuses: it goes on living until the close is retried. Without having been asked,
// a leaf ends itself with ClosedWith: for a child that Never restarts that is its
// normal end; for any other it is a death, by ErrEnded when err is nil.
func (l *Life) ClosedWith(err error) {
	l.mu.Lock()
	asked := l.phase == lifeClosing
	if asked && err != nil && !IsTerminal(err) {
		l.closing = false
		replace(l.refused, err)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	switch {
	case asked:
		l.finish(err, true)
	case l.seat.spec.Restart == Never:
		l.finish(err, err == nil)
	case err == nil:
		l.die(ErrEnded)
	default:
		l.die(err)
	}
}

// replace puts v into a channel of capacity 1, in place of what is in it.
func replace(ch chan error, v error) {
	forget(ch)
	ch <- v
}

// forget takes out what nobody waited for any more.
func forget(ch chan error) {
	select {
	case <-ch:
	default:
	}
}

// Fail ends this life with err. Nil is a mistake of the caller and counts as
// ErrUnknownFailure.
func (l *Life) Fail(err error) { l.die(err) }

func (l *Life) die(err error) {
	if err == nil {
		err = ErrUnknownFailure
	}
	l.finish(err, false)
}

// Fence asks the group, or the nearest one above that has a fence plan, for its
// fence. The first reason wins; while a fence heals, only what it has reopened
// already can ask for another. Without any plan it is a Fail.
func (l *Life) Fence(reason error) {
	if reason == nil {
		reason = ErrUnknownFailure
	}
	if l.ended() {
		return
	}
	for s := l.seat; s != nil; s = s.parent.seat {
		if s.parent.spec.Fence.empty() {
			continue
		}
		s.parent.fence(s, l.seat.path, reason)
		return
	}
	l.Fail(reason)
}

// Tell sends a message to this life alone. It is not counted against the mailbox,
// comes after what already waits, and is dropped once the life is over.
func (l *Life) Tell(msg any) { l.tell(msg) }

func (l *Life) tell(msg any) { _ = l.mailbox.post(&delivery{msg: msg, own: true}) }

// Reply answers a message whose ctx.Sender() was kept. An answer to what is answered
// already, or to who does not wait any more, is dropped.
func (l *Life) Reply(to *actor.PID, answer any) {
	if to == nil {
		return
	}
	if to.Id == l.tree.asks.id {
		l.tree.asks.SendUserMessage(to, answer)
		return
	}
	if l.mailbox.settleSender(to) || !l.ended() {
		if _, alive := l.tree.system.ProcessRegistry.Get(to); alive {
			l.tree.hand(to, answer, nil)
		}
	}
}

// Hold gives r into custody as belonging to this life: what has not ended when the
// life is over is severed. If the life is over already, or the tree closed, r is
// severed at once and the error says so.
func (l *Life) Hold(r Resource) error {
	l.mu.Lock()
	over := l.phase == lifeOver
	if !over {
		l.label = r.Label()
	}
	l.mu.Unlock()
	if err := l.tree.custody.hold(l.seat.path, l.generation, r); err != nil {
		return err
	}
	if l.ended() { // perhaps after its resources were severed
		sever(r)
		return l.addr.unavailable
	}
	return nil
}

// Add is Tree.Add.
func (l *Life) Add(ctx context.Context, group string, s Spec) (Ref, error) {
	return l.tree.Add(ctx, group, s)
}

// Remove is Tree.Remove.
func (l *Life) Remove(ctx context.Context, path string) error { return l.tree.Remove(ctx, path) }
