package claim_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

// fate is what happens to one call of a backend.
type fate int

const (
	answered fate = iota
	lost          // it never arrives, and no answer comes
	unheard       // it arrives, and no answer comes
	late          // no answer comes, and it arrives at some later time
	contended
	refusedForNow
	stale // a read that a leader answers which lags
)

// network is what several processes have between them and one ledger: it holds each
// call until it is let through, loses answers, and delivers writes late.
type network struct {
	backend *memory.Backend
	onLand  func(ledger.Batch, uint64) // called for every batch that lands

	mu      sync.Mutex
	waiting []*call
	wire    []ledger.Batch // sent, and yet to arrive
	past    map[string][]ledger.Row
}

// call is one that waits.
type call struct {
	link *link
	kind string // get, send, sync
	turn chan fate
}

func newNetwork(onLand func(ledger.Batch, uint64)) *network {
	return &network{backend: memory.New(), onLand: onLand, past: map[string][]ledger.Row{}}
}

// land writes to the ledger itself.
func (n *network) land(b ledger.Batch) (uint64, error) {
	last, err := n.backend.Send(context.Background(), b)
	if err != nil {
		return 0, err
	}
	first := last - uint64(len(b.Writes)) + 1
	for i, w := range b.Writes {
		n.past[w.Key] = append(n.past[w.Key], ledger.Row{Key: w.Key, Value: w.Value, Revision: first + uint64(i)})
	}
	if n.onLand != nil {
		n.onLand(b, last)
	}
	return last, nil
}

// deliver lets one late write arrive.
func (n *network) deliver(choice int) {
	i := choice % len(n.wire)
	b := n.wire[i]
	n.wire = slices.Delete(n.wire, i, i+1)
	_, _ = n.land(b)
}

// link is the ledger as one process reaches it.
type link struct {
	*network
	// fresh counts the reads for which the last Sync still vouches.
	fresh int
	mu    sync.Mutex
	dead  bool
}

var _ ledger.Backend = (*link)(nil)

var errDead = errors.New("the process is dead")

// pass waits for the turn, and learns what happens to the call.
func (l *link) pass(kind string) (fate, error) {
	c := &call{link: l, kind: kind, turn: make(chan fate, 1)} // one answer
	l.network.mu.Lock()
	l.waiting = append(l.waiting, c)
	l.network.mu.Unlock()
	f := <-c.turn
	if l.isDead() {
		if kind == "send" {
			return f, nil // what a process sends as it dies may arrive
		}
		return f, errDead
	}
	return f, nil
}

func (l *link) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
}

func (l *link) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

func (l *link) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	f, err := l.pass("get")
	if err != nil {
		return ledger.Row{}, false, err
	}
	if f == lost || ctx.Err() != nil {
		return ledger.Row{}, false, messages.BrokerAway
	}
	if l.fresh > 0 {
		l.fresh--
	} else if past := l.past[key]; f == stale && len(past) > 1 {
		return past[len(past)-2], true, nil
	}
	return l.backend.Get(context.Background(), key)
}

func (l *link) List(ctx context.Context, filter string) ([]string, error) {
	return nil, errors.New("nothing of the claim lists")
}

// Sync vouches for the next few reads.
func (l *link) Sync(ctx context.Context) error {
	f, err := l.pass("sync")
	if err != nil {
		return err
	}
	if f == lost || ctx.Err() != nil {
		return messages.BrokerAway
	}
	l.fresh = 4
	return nil
}

func (l *link) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	f, err := l.pass("send")
	if err != nil {
		return 0, err
	}
	if (ctx.Err() != nil || l.isDead()) && f != lost {
		f = late // nobody waits for the answer
	}
	switch f {
	case contended:
		return 0, ledger.ErrContended
	case refusedForNow:
		return 0, ledger.ErrNotApplied
	case lost:
		return 0, ledger.ErrUnknown
	case late:
		l.wire = append(l.wire, b)
		return 0, ledger.ErrUnknown
	}
	last, err := l.land(b)
	if f == unheard {
		return 0, ledger.ErrUnknown
	}
	return last, err
}
