package stream

import (
	"context"
	"slices"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
)

// Lanes bounds the batches a process has open, over all its connections: the
// server holds 50 a stream for everybody, and refuses the rest. Batches that wait
// for a lane travel together, as one: see group. So a crowd costs the stream about
// as many batches as it has lanes, and not one each.
//
// Nobody is overtaken by a batch that writes a key of his, and nothing runs here by
// itself: each group is sent by the caller of one of its batches.
type Lanes struct {
	most int

	mu      sync.Mutex
	open    []*group  // under way; they have no key in common
	waiting []*parcel // in the order they came
}

// MaxLanes is how many batches one process may have open.
const MaxLanes = 12

// lanesOfOne is how many of them go to a stream of one replica. It makes each batch
// durable before it looks at the next, so more would only be smaller.
const lanesOfOne = 2

// NewLanes makes n lanes; one set per process and stream.
func NewLanes(n int) *Lanes { return &Lanes{most: n} }

// wire is where batches are sent. Those of different wires never travel together.
type wire interface {
	// publishBatch lands all rows or none, as ledger.Backend says of Send.
	publishBatch(ctx context.Context, writes []ledger.Write) (uint64, error)
	// width is how many batches at once do the stream good; all wires to one stream agree.
	width() int
}

func (c client) width() int {
	if c.cfg.proved() {
		return lanesOfOne
	}
	return MaxLanes
}

// parcel is one batch that was handed in.
type parcel struct {
	ctx    context.Context // its caller's
	by     wire
	writes []ledger.Write
	// lead is told the group that the parcel's caller is to send; capacity 1, since a
	// parcel leads at most once.
	lead chan *group
	done chan struct{} // closed when last and err stand
	last uint64
	err  error
}

// send lands one batch, alone or with others. A caller whose context ends gets
// ledger.ErrUnknown, or ErrNotApplied if his batch was not on its way yet; those who
// travel with him are not disturbed, and if he leads, he stays until it is known what
// became of them.
func (l *Lanes) send(ctx context.Context, by wire, writes []ledger.Write) (uint64, error) {
	p := &parcel{ctx: ctx, by: by, writes: writes, lead: make(chan *group, 1), done: make(chan struct{})}
	l.enter(p)
	select {
	case g := <-p.lead:
		return l.conduct(g, p)
	case <-p.done:
		return p.last, p.err
	case <-ctx.Done():
	}
	if l.withdraw(p) {
		return 0, ledger.ErrNotApplied
	}
	select {
	case g := <-p.lead:
		return l.conduct(g, p)
	case <-p.done:
		return p.last, p.err
	default:
		return 0, ledger.ErrUnknown
	}
}

func (l *Lanes) enter(p *parcel) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, p)
	l.dispatch()
}

// withdraw takes back a parcel that is not on its way.
func (l *Lanes) withdraw(p *parcel) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.waiting, p)
	if at < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, at, at+1)
	l.dispatch() // it may have stood in another's way
	return true
}

// conduct sends the group that p leads, and frees its lane.
func (l *Lanes) conduct(g *group, p *parcel) (uint64, error) {
	defer l.leave(g)
	g.send()
	return p.last, p.err
}

func (l *Lanes) leave(g *group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = slices.DeleteFunc(l.open, func(other *group) bool { return other == g })
	l.dispatch()
}

// dispatch sends groups on their way while there is a lane and somebody who may go.
func (l *Lanes) dispatch() {
	for {
		g := l.next()
		if g == nil {
			return
		}
		l.open = append(l.open, g)
		g.parcels[0].lead <- g
	}
}

// next gathers the group that goes next: the first that may go, and all who may go
// with it. Who waits for the end of a batch that writes one of his keys keeps his
// place for all of them.
func (l *Lanes) next() *group {
	if len(l.waiting) == 0 || len(l.open) >= min(l.most, l.waiting[0].by.width()) {
		return nil
	}
	taken := map[string]bool{}
	for _, g := range l.open {
		for _, p := range g.parcels {
			p.mark(taken)
		}
	}
	var g *group
	var stay []*parcel
	for i, p := range l.waiting {
		if g != nil && g.full() {
			stay = append(stay, l.waiting[i:]...)
			break
		}
		switch {
		case p.meets(taken):
			stay = append(stay, p)
		case g == nil:
			g = newGroup(p)
		case g.takes(p):
			g.add(p)
		default:
			stay = append(stay, p)
		}
		p.mark(taken)
	}
	l.waiting = stay
	return g
}

// meets reports whether the parcel writes a key that is taken.
func (p *parcel) meets(taken map[string]bool) bool {
	return slices.ContainsFunc(p.writes, func(w ledger.Write) bool { return taken[w.Key] })
}

func (p *parcel) mark(taken map[string]bool) {
	for _, w := range p.writes {
		taken[w.Key] = true
	}
}

// fenced reports whether something else than its own rows decides about the parcel.
func (p *parcel) fenced() bool {
	return slices.ContainsFunc(p.writes, func(w ledger.Write) bool { return w.Pin.Key != "" })
}
