package ledger

import (
	"context"
	"errors"

	"github.com/cotal-ai/authplane/messages"
)

// Row is one record as it was read.
type Row struct {
	Key   string
	Value []byte
	// Revision is the stream sequence of the row's last write; it is no part of the value.
	Revision uint64
}

// Pin is what a write depends on: the last revision of a key, 0 for a key that
// was never written.
type Pin struct {
	// Key is empty for the written key itself. Another key makes the pin a fence:
	// the write is then not pinned to its own past.
	Key      string
	Revision uint64
}

// Write is one row of a batch.
type Write struct {
	Key   string
	Value []byte
	Pin   Pin
}

// pinned is the pin with its key spelled out.
func (w Write) pinned() Pin {
	if w.Pin.Key == "" {
		return Pin{Key: w.Key, Revision: w.Pin.Revision}
	}
	return w.Pin
}

// Create writes a key that was never written before.
func Create(key string, value []byte) Write { return Write{Key: key, Value: value} }

// Replace writes over row as it was read, and only so.
func Replace(row Row, value []byte) Write {
	return Write{Key: row.Key, Value: value, Pin: Pin{Revision: row.Revision}}
}

// Touch writes row again unchanged: whoever else depends on its revision loses.
func Touch(row Row) Write { return Replace(row, row.Value) }

// Fenced writes a row whatever stood there, while the fence has not moved.
func Fenced(key string, value []byte, fence Pin) Write {
	return Write{Key: key, Value: value, Pin: fence}
}

// MaxBatch is the most rows one batch may have; a server takes no more.
const MaxBatch = 1000

// Batch is what is written together: all of it or nothing.
type Batch struct {
	Writes []Write
	// Witness names the one written row whose value holds something random, so that
	// it can be told from anybody else's. Whoever leaves it empty must tell by
	// himself, after ErrOvertaken, whether his batch landed.
	Witness string
}

// Check refuses a batch that no stream could take as it is meant: empty or too
// large, a key written twice, a fence on a key of the batch, a witness that is not
// written.
func (b Batch) Check() error {
	if len(b.Writes) == 0 || len(b.Writes) > MaxBatch {
		return messages.InternalFault.Because("a batch has 1 to %d rows, not %d", MaxBatch, len(b.Writes))
	}
	written := make(map[string]bool, len(b.Writes))
	for _, w := range b.Writes {
		if w.Key == "" || written[w.Key] {
			return messages.InternalFault.Because("a batch writes %q twice, or writes no key", w.Key)
		}
		written[w.Key] = true
	}
	for _, w := range b.Writes {
		if w.Pin.Key != "" && written[w.Pin.Key] {
			return messages.InternalFault.Because("a batch is fenced by %q, which it writes", w.Pin.Key)
		}
	}
	if b.Witness != "" && !written[b.Witness] {
		return messages.InternalFault.Because("the witness %q is not written", b.Witness)
	}
	return nil
}

// Source is where rows are read.
type Source interface {
	// Get reads the row as the stream's leader holds it. Only true absence is false; a
	// delete or purge marker is messages.RowCorrupt, no leader messages.BrokerAway (or
	// messages.Unproved, from a source that insists on proof).
	Get(ctx context.Context, key string) (Row, bool, error)
	// List names the keys that match a filter (tokens, `*`, trailing `>`), sorted,
	// without reading them. A key written while it runs may be missed.
	List(ctx context.Context, filter string) ([]string, error)
}

// Backend is one stream: package memory or package stream. Callers use Store,
// which knows what its answers mean.
type Backend interface {
	Source
	// Send tries once to land the batch, and returns the revision of its last row; the
	// rows before it have the revisions before. It fails with
	// ErrLost (a pin does not hold), ErrContended (others are at the same keys),
	// ErrNotApplied (for now) or ErrUnknown (no answer), or with what no repetition
	// can better.
	Send(ctx context.Context, b Batch) (uint64, error)
	// Sync returns once the leader is proved: reads that begin within a second after
	// it see everything that was acknowledged to anybody before.
	Sync(ctx context.Context) error
}

// How one attempt of a batch may fail. Only ErrLost and ErrOvertaken leave Apply.
var (
	// ErrLost says that a pin does not hold: nothing was written.
	ErrLost = errors.New("the row has moved")
	// ErrOvertaken is ErrLost after an answer was lost, with the witness gone: what was
	// written may have landed and have been written over since. It wraps ErrLost.
	ErrOvertaken = overtaken{}
	// ErrContended says that others write the same keys at this moment: nothing was written.
	ErrContended = errors.New("others write the same rows")
	// ErrNotApplied says that nothing was written, for reasons that pass: too many
	// batches, no leader.
	ErrNotApplied = errors.New("the stream takes nothing now")
	// ErrUnknown says that no answer came.
	ErrUnknown = errors.New("no answer came")
)

type overtaken struct{}

func (overtaken) Error() string { return "the row has moved, perhaps past our own write" }
func (overtaken) Unwrap() error { return ErrLost }
