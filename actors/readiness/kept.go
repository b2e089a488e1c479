package readiness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Name of the group, which is also its path.
const Name = "readiness"

const (
	// openWithin is how long the connection to another service may take to open.
	openWithin = 15 * time.Second
	// readWithin bounds a read, over a restart of the actor.
	readWithin = 10 * time.Second
	// removeWithin is more than the close of an actor takes.
	removeWithin = 2 * supervisor.DefaultCloseWithin
)

// Spec describes the group as a child of its space.
func Spec() supervisor.Spec {
	return supervisor.Spec{Name: Name, Restart: supervisor.Escalate, Group: &supervisor.Group{Dynamic: true}}
}

// Kept is the one connection of a space, over all lives of the group. It is safe for
// concurrent use.
type Kept struct {
	dialer *broker.Dialer

	mu      sync.Mutex
	count   uint64
	current *place   // nil until somebody reads, and after an open that failed
	owed    []*place // left, and not closed yet
}

// place is a service that is or was asked.
type place struct {
	endpoint, instance string
	name               string
	opened             chan struct{} // closed when ref or err stands
	ref                supervisor.Ref
	err                error
	readers            int   // guarded by Kept, as trouble is
	trouble            error // why it could not be closed when that was tried
}

// New keeps a connection that dialer opens.
func New(dialer *broker.Dialer) *Kept { return &Kept{dialer: dialer} }

// Read asks the instance's service how it is. Whoever asks about another instance than
// the one before has that replaced; reads that are under way there go on. Nobody waits for
// longer than ctx, whatever an open or a close takes. It fails with
// messages.ServiceClosing, ActorAway and BrokerAway.
func (k *Kept) Read(ctx context.Context, tree *supervisor.Tree, ask messages.ReadReadiness) (messages.Readiness, error) {
	p, mine := k.enter(ask)
	if mine {
		go k.open(tree, p) // ends when it is open, or with its time, or with the tree
	}
	defer k.leave(ctx, tree, p)
	select {
	case <-p.opened:
	case <-ctx.Done():
		return messages.Readiness{}, context.Cause(ctx)
	}
	if p.err != nil {
		return messages.Readiness{}, fmt.Errorf("readiness of %s: %w", ask.Endpoint, client.Unopened(p.err))
	}
	return client.Repeat[messages.Readiness](ctx, p.ref, ask, readWithin, client.Passes)
}

// Problems says in words which connections could not be closed; empty when none. The
// next read tries again.
func (k *Kept) Problems() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, p := range k.owed {
		if p.trouble != nil {
			all = append(all, fmt.Sprintf("the connection for the readiness of %s could not be closed: %s", p.endpoint, messages.PublicText(p.trouble)))
		}
	}
	return all
}

// enter joins the readers of an instance; mine says that the caller has to open.
func (k *Kept) enter(ask messages.ReadReadiness) (p *place, mine bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.current; p != nil && p.endpoint == ask.Endpoint && p.instance == ask.Instance {
		p.readers++
		return p, false
	}
	k.count++
	p = &place{endpoint: ask.Endpoint, instance: ask.Instance, name: fmt.Sprintf("%s-%d", ask.Endpoint, k.count),
		opened: make(chan struct{}), readers: 2} // the caller, and whoever opens
	if k.current != nil {
		k.owed = append(k.owed, k.current)
	}
	k.current = p
	return p, true
}

// open opens a place, for all who wait for it, whoever leaves meanwhile, and closes it if
// all of them have and it was left.
func (k *Kept) open(tree *supervisor.Tree, p *place) {
	defer func() {
		if k.out(p) == 0 {
			k.close(tree)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), openWithin)
	defer cancel()
	p.err = messages.ActorAway // unless Add returns
	defer func() {
		k.mu.Lock()
		if p.err != nil && k.current == p {
			k.current = nil
		}
		k.mu.Unlock()
		close(p.opened)
	}()
	p.ref, p.err = tree.Add(ctx, Name, spec(p.name, p.endpoint, k.dialer))
}

// leave ends a read, and waits, unless ctx ends, for the close of every place that was
// left by its last reader.
func (k *Kept) leave(ctx context.Context, tree *supervisor.Tree, p *place) {
	k.out(p)
	ended := make(chan struct{})
	go func() { // ends with the closes, which have their time, or with the tree
		defer close(ended)
		k.close(tree)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// out is one reader of a place less; it says how many there are still.
func (k *Kept) out(p *place) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	p.readers--
	return p.readers
}

// close closes every place that was left and has no reader any more.
func (k *Kept) close(tree *supervisor.Tree) {
	for _, over := range k.over() {
		ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
		err := tree.Remove(ctx, Name+"/"+over.name)
		cancel()
		if err != nil && !errors.Is(err, supervisor.ErrNoSuchActor) && !errors.Is(err, supervisor.ErrClosing) {
			k.owe(over, err)
		}
	}
}

// over takes the places that nobody reads any more from what is owed.
func (k *Kept) over() (over []*place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var still []*place
	for _, o := range k.owed {
		if o.readers == 0 {
			over = append(over, o)
		} else {
			still = append(still, o)
		}
	}
	k.owed = still
	return over
}

// owe keeps a place that could not be closed.
func (k *Kept) owe(p *place, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p.trouble = err
	k.owed = append(k.owed, p)
}
