package claim

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// parcel is a step on its way, and what became of it once done is closed.
type parcel struct {
	ctx  context.Context
	step Step
	done chan struct{}
	last uint64
	err  error
}

func (p *parcel) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// outcome waits for it. Whoever gives up while it is under way does not learn it.
func (p *parcel) outcome(ctx context.Context) (uint64, error) {
	select {
	case <-p.done:
		return p.last, p.err
	case <-ctx.Done():
	}
	if p.isDone() {
		return p.last, p.err
	}
	return 0, messages.OutcomeUnknown.From(ctx.Err())
}

func (p *parcel) end(last uint64, err error) {
	p.last, p.err = last, err
	close(p.done)
}

// conflicts reports whether two steps may not travel together: one writes what the
// other writes, or rests on.
func (p *parcel) conflicts(other *parcel) bool {
	return slices.ContainsFunc(p.step.Writes, func(a ledger.Write) bool {
		return slices.ContainsFunc(other.step.Writes, func(b ledger.Write) bool {
			return a.Key == b.Key || a.Key == b.Pin.Key || b.Key == a.Pin.Key
		})
	}) || slices.ContainsFunc(slices.Concat(p.step.Begin, p.step.Done), func(op string) bool {
		return slices.Contains(other.step.Begin, op) || slices.Contains(other.step.Done, op)
	})
}

// merged is what steps are together.
func merged(steps []*parcel) (all Step) {
	for _, p := range steps {
		all.Writes = append(all.Writes, p.step.Writes...)
		all.Begin = append(all.Begin, p.step.Begin...)
		all.Done = append(all.Done, p.step.Done...)
	}
	return all
}

func (l *Lane) queue(ctx context.Context, step Step) *parcel {
	p := &parcel{ctx: ctx, step: step, done: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, p)
	return p
}

// withdraw takes a parcel back; false if it is under way.
func (l *Lane) withdraw(p *parcel) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, p)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	return i >= 0
}

// take is the parcel, which waits, with all others that may travel with it.
func (l *Lane) take(mine *parcel) []*parcel {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken, rows := []*parcel{mine}, 1+len(mine.step.Writes)
	l.waiting = slices.DeleteFunc(l.waiting, func(p *parcel) bool {
		if p == mine {
			return true
		}
		if rows+len(p.step.Writes) > ledger.MaxBatch || slices.ContainsFunc(taken, p.conflicts) {
			return false
		}
		taken, rows = append(taken, p), rows+len(p.step.Writes)
		return true
	})
	return taken
}

// land sends parcels, under the turn, and tells each what became of it. It gives up
// when the last of those who wait has.
func (l *Lane) land(parcels []*parcel) {
	if len(parcels) == 1 {
		l.part(parcels[0].ctx, parcels)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(parcels[0].ctx))
	defer cancel()
	var interested atomic.Int64
	interested.Store(int64(len(parcels)))
	for _, p := range parcels {
		stop := context.AfterFunc(p.ctx, func() {
			if interested.Add(-1) == 0 {
				cancel()
			}
		})
		defer stop()
	}
	l.part(ctx, parcels)
}

// part sends parcels as one batch. When a row has moved that one of them rests on,
// nothing has landed: then they are sent in halves, until it is alone.
// Behind one whose outcome is not known none is sent: it would say what is owed without
// what that one adds.
func (l *Lane) part(ctx context.Context, parcels []*parcel) {
	if l.doubt != nil {
		for _, p := range parcels {
			p.end(0, messages.Contended.From(ctx.Err()))
		}
		return
	}
	last, err := l.send(ctx, parcels)
	if len(parcels) > 1 && errors.Is(err, ledger.ErrLost) {
		half := len(parcels) / 2
		l.part(ctx, parcels[:half])
		l.part(ctx, parcels[half:])
		return
	}
	for _, p := range slices.Backward(parcels) {
		p.end(last, err)
		if err == nil {
			last -= uint64(len(p.step.Writes))
		}
	}
}
