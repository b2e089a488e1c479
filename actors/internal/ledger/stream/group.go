package stream

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
)

// group is some parcels that travel as one batch. They have no key in common, so
// that none can spoil another but by a pin that does not hold; then the group is
// parted until the one that does not hold is alone. A fenced parcel always is alone.
//
// An outcome that is not known is not known of any of them. Each caller repeats his
// own batch then, as after any lost answer: if the group lands after all, his pins
// are past, and his witness tells him.
type group struct {
	parcels []*parcel
	rows    int
	fenced  bool
}

func newGroup(p *parcel) *group {
	g := &group{fenced: p.fenced()}
	g.add(p)
	return g
}

func (g *group) add(p *parcel) {
	g.parcels = append(g.parcels, p)
	g.rows += len(p.writes)
}

// takes reports whether p may travel with the others.
func (g *group) takes(p *parcel) bool {
	return !g.fenced && !p.fenced() && p.by == g.parcels[0].by && g.rows+len(p.writes) <= ledger.MaxBatch
}

// full reports whether nobody may join any more.
func (g *group) full() bool { return g.fenced || g.rows == ledger.MaxBatch }

// send lands every parcel that can be landed, and tells each what became of it. It
// returns when all are told. It gives up when the last of its callers has.
func (g *group) send() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.parcels[0].ctx))
	defer cancel()
	var interested atomic.Int64
	interested.Store(int64(len(g.parcels)))
	for _, p := range g.parcels {
		stop := context.AfterFunc(p.ctx, func() {
			if interested.Add(-1) == 0 {
				cancel()
			}
		})
		defer stop()
	}
	land(ctx, g.parcels)
}

// land sends parcels as one batch. Parcels that did not land because of one of them
// are sent again in halves.
func land(ctx context.Context, parcels []*parcel) {
	last, err := parcels[0].by.publishBatch(ctx, merged(parcels))
	if len(parcels) > 1 && (errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrContended)) {
		half := len(parcels) / 2
		land(ctx, parcels[:half])
		land(ctx, parcels[half:])
		return
	}
	for i := len(parcels) - 1; i >= 0; i-- {
		p := parcels[i]
		p.last, p.err = last, err
		close(p.done)
		if err == nil {
			last -= uint64(len(p.writes))
		}
	}
}

func merged(parcels []*parcel) []ledger.Write {
	if len(parcels) == 1 {
		return parcels[0].writes
	}
	var writes []ledger.Write
	for _, p := range parcels {
		writes = append(writes, p.writes...)
	}
	return writes
}
