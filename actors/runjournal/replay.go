package runjournal

import (
	"context"

	"github.com/cotal-ai/authplane/messages"
)

// History is a journal as it was replayed.
type History struct {
	Run     string
	Records []Record
	// Lease is the last activation's.
	Lease Lease
	State State
}

// Head is the sequence of the last record, 0 for none.
func (h *History) Head() uint64 {
	if len(h.Records) == 0 {
		return 0
	}
	return h.Records[len(h.Records)-1].Sequence
}

// Replay reads the journal of a run, and proves it whole: each record is the run's own,
// they are counted from 0 without a gap, the first is an activation that replayed
// nothing, and each later one replayed all that stands before it. A journal that is
// shorter than known, the sequence of a record that somebody saw, is not whole either.
// Whatever does not hold is messages.JournalDamaged.
func Replay(ctx context.Context, from Source, run string, known uint64) (*History, error) {
	if err := CheckRun(run); err != nil {
		return nil, err
	}
	h := &History{Run: run}
	if err := h.more(ctx, from); err != nil {
		return nil, err
	}
	if h.Head() < known {
		return nil, messages.JournalDamaged.Because("it is shorter than it was")
	}
	return h, nil
}

// more replays what was appended since.
func (h *History) more(ctx context.Context, from Source) error {
	stored, err := from.Read(ctx, h.Head())
	if err != nil {
		return err
	}
	for _, one := range stored {
		r, err := Decode(one.Data)
		if err != nil {
			return err
		}
		r.Sequence = one.Sequence
		if err := h.add(r); err != nil {
			return err
		}
	}
	return nil
}

func (h *History) add(r Record) error {
	head, n := h.Head(), uint64(len(h.Records))
	switch {
	case r.Run != h.Run:
		return messages.JournalDamaged.Because("record %d is another run's", n)
	case r.N != n || r.Sequence <= head:
		return messages.JournalDamaged.Because("record %d is missing", n)
	case n == 0 && r.Kind != Activation:
		return messages.JournalDamaged.Because("it does not begin with an activation")
	case r.Kind == Activation && r.ReplayedTo != head:
		return messages.JournalDamaged.Because("record %d did not replay what stands before it", n)
	case r.Kind == Activation && n > 0 && h.stale(r.Lease):
		return messages.JournalDamaged.Because("record %d has a lease that was over", n)
	}
	if r.Kind == Activation {
		h.Lease = r.Lease
	} else if err := h.State.apply(r.Entry); err != nil {
		return messages.JournalDamaged.Because("record %d: %s", n, messages.PublicText(err))
	}
	h.Records = append(h.Records, r)
	return nil
}

// stale reports whether a lease may not follow the last one: a lower token never may,
// and the same one only as the same holder of the same process.
func (h *History) stale(next Lease) bool {
	return next.Token < h.Lease.Token || next.Token == h.Lease.Token && next != h.Lease
}
