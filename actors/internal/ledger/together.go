package ledger

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/cotal-ai/authplane/messages"
)

// Bounds of one batch of ends. What does not fit travels in the next one.
const (
	// endedAtOnce is the most ends in one batch: a row each, and that of what is asked for.
	endedAtOnce = 250
	// endedBytes is how many bytes their rows may have together, if there is more than one.
	endedBytes = 1 << 20
)

// wish is what one caller wants written, as it follows from what was read.
type wish struct {
	// grant is the end of a grant; without a key there is none to end.
	grant Write
	// ask is an incarnation to be asked for; empty for none. Unask are those to be asked
	// for no longer.
	ask   string
	unask []string
}

func (w wish) empty() bool { return w.grant.Key == "" && w.asks() == 0 }

// asks counts what the row of what is asked for is needed for.
func (w wish) asks() int {
	if w.ask != "" {
		return 1 + len(w.unask)
	}
	return len(w.unask)
}

// passenger is one caller's wish on its way, and what became of it once done is closed.
type passenger struct {
	ctx context.Context // its caller's
	// look reads what stands. Whoever sends the batch calls it, until done is closed.
	look func(ctx context.Context) (wish, error)
	// moved says that its grant moved before, while it travelled with others.
	moved bool

	wish wish
	// leave says that nobody waits for it any more.
	leave func()
	done  chan struct{}
	// wrote says that something was written for it.
	wrote bool
	err   error
}

func (p *passenger) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *passenger) end(wrote bool, err error) {
	p.wrote, p.err = wrote, err
	close(p.done)
	p.leave()
}

// outcome waits for it. Whoever gives up while it is under way does not learn it.
func (p *passenger) outcome(ctx context.Context) (bool, error) {
	select {
	case <-p.done:
		return p.wrote, p.err
	case <-ctx.Done():
	}
	if p.isDone() {
		return p.wrote, p.err
	}
	return false, messages.OutcomeUnknown.From(ctx.Err())
}

// ride is where those wait who write the process's row of what is asked for. One batch
// is under way at a time; whoever comes meanwhile travels in the next, with all others
// who wait then. What keeps the ledger right are the pins.
type ride struct {
	store *Store
	Options
	turn chan struct{} // held by whoever sends: capacity 1

	mu      sync.Mutex
	waiting []*passenger // in the order in which they came
}

// travel lands what p wants, and reports whether that was anything. It fails with ErrLost
// when p's own grant moved, or when it cannot be told why the batch was lost: then p
// may travel again, as one that moved. Nobody who travels with it fails, or waits for
// more than the batch that is sent anew, because of it.
//
// Whoever sends stays until it is known what became of all in his batch.
func (r *ride) travel(ctx context.Context, p *passenger) (wrote bool, err error) {
	p.ctx, p.done = ctx, make(chan struct{})
	r.mu.Lock()
	r.waiting = append(r.waiting, p)
	r.mu.Unlock()
	select {
	case r.turn <- struct{}{}:
		r.lead(p)
	case <-p.done:
	case <-ctx.Done():
		if r.withdraw(p) {
			return false, messages.Contended.From(ctx.Err())
		}
	}
	return p.outcome(ctx)
}

// lead sends for p, who has the turn, and for those who may travel with it; unless
// somebody has sent for p meanwhile.
func (r *ride) lead(p *passenger) {
	defer func() { <-r.turn }()
	if !p.isDone() {
		r.send(r.board(p))
	}
}

func (r *ride) withdraw(p *passenger) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.waiting, p)
	if i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
	}
	return i >= 0
}

// board is p with those who wait and are of its kind: whose grant moved before may move
// again, and then only others of whom that is true have the batch sent anew.
func (r *ride) board(p *passenger) []*passenger {
	r.mu.Lock()
	defer r.mu.Unlock()
	aboard := []*passenger{p}
	r.waiting = slices.DeleteFunc(r.waiting, func(other *passenger) bool {
		if other == p {
			return true
		}
		if other.moved != p.moved || len(aboard) == endedAtOnce {
			return false
		}
		aboard = append(aboard, other)
		return true
	})
	return aboard
}

// send lands what passengers want, in one batch unless it is too much, and tells each
// what became of it. It gives up when the last of those who wait has.
func (r *ride) send(all []*passenger) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(all[0].ctx))
	defer cancel()
	var interested atomic.Int64
	interested.Store(int64(len(all)))
	for _, p := range all {
		p.leave = sync.OnceFunc(func() {
			if interested.Add(-1) == 0 {
				cancel()
			}
		})
		defer context.AfterFunc(p.ctx, p.leave)()
	}
	defer func() { // nobody is forgotten, also when something panics
		for _, p := range undone(all) {
			p.end(false, messages.OutcomeUnknown)
		}
	}()
	for left, lost := all, false; len(left) > 0; left = undone(left) {
		lost = r.once(ctx, left, lost)
	}
}

func undone(all []*passenger) []*passenger {
	return slices.DeleteFunc(slices.Clone(all), (*passenger).isDone)
}

// once reads for passengers and sends one batch, and ends those of whom it is known by
// then what became of them. Those who would not fit are left to another one; all are if
// the batch is lost, which it reports, unless it is that of a lone one. Again says that
// the one before was lost.
func (r *ride) once(ctx context.Context, all []*passenger, again bool) (lost bool) {
	before := make([]Pin, len(all))
	for i, p := range all {
		before[i] = p.wish.grant.pinned()
	}
	r.look(ctx, all)
	if again && !explained(all, before) {
		endAll(all, false, ErrLost)
		return false
	}
	batch, aboard := r.batch(ctx, undone(all))
	if len(aboard) == 0 {
		return false
	}
	_, err := r.store.Apply(ctx, batch)
	switch {
	case err == nil:
		endAll(aboard, true, nil)
	case errors.Is(err, ErrLost) && len(aboard) > 1:
		return true
	default:
		endAll(aboard, false, err)
	}
	return false
}

// explained finds out because of whom a batch was lost, and ends whoever's grant has
// moved since. It reports whether there is any change: if not, to send again is no use.
func explained(all []*passenger, before []Pin) (yes bool) {
	for i, p := range all {
		switch now := p.wish.grant.pinned(); {
		case p.isDone(), before[i].Key != "" && now.Key == "": // it may have landed after all
			yes = true
		case now != before[i]:
			p.end(false, ErrLost)
			yes = true
		}
	}
	return yes
}

func endAll(passengers []*passenger, wrote bool, err error) {
	for _, p := range passengers {
		p.end(wrote, err)
	}
}

// look reads for passengers, and ends those who are refused or want nothing.
func (r *ride) look(ctx context.Context, all []*passenger) {
	var looking errgroup.Group // each failure is one passenger's
	looking.SetLimit(readAtOnce)
	for _, p := range all {
		read := func() error {
			found, err := p.look(ctx)
			if p.wish = found; err != nil || found.empty() {
				p.end(false, err)
			}
			return nil
		}
		if len(all) == 1 {
			_ = read()
			return
		}
		looking.Go(read)
	}
	_ = looking.Wait()
}
