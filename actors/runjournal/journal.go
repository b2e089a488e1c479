package runjournal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// Mode says what a driver believes of the run that it takes.
type Mode string

const (
	// New is a run that nobody ever drove.
	New Mode = "new"
	// Existing is one that somebody did.
	Existing Mode = "existing"
)

// replays is how often a journal is replayed before it is given up, while others write.
const replays = 3

// Taking is what a driver takes a journal by.
type Taking struct {
	Mode  Mode
	Lease Lease
	// Known is the sequence of a record that the journal must still have, 0 for none.
	Known uint64
	// Still is asked before each replay but the first whether the lease is still this
	// driver's; nil for not at all.
	Still func(context.Context) error
}

// Journal is a run's journal in the hands of its one driver. It is safe for concurrent
// use: appends wait for each other.
type Journal struct {
	sink Sink
	now  func() time.Time
	turn chan struct{} // capacity 1: held by whoever appends
	// What follows belongs to whoever has the turn.
	history *History
	over    error // why nothing is appended any more
}

// Take replays a journal and activates the driver. It is refused with
//   - messages.JournalStarted for a New run that has records, JournalEmpty for an Existing
//     one that has none, and Malformed for any other mode;
//   - LeaseStale when the run is driven under a later lease, or the same by somebody else;
//   - JournalDamaged when the journal is not whole, and RunEnded when the run is over;
//   - JournalMoving when the former driver appended during each of three replays;
//   - JournalStalled when no acknowledgement came, and BrokerAway when no answer did: the
//     same driver may take the journal again.
func Take(ctx context.Context, from Source, to Sink, taking Taking) (*Journal, error) {
	if err := taking.check(); err != nil {
		return nil, err
	}
	h, err := Replay(ctx, from, to.Run(), taking.Known)
	if err != nil {
		return nil, fmt.Errorf("take the journal of %s: %w", to.Run(), err)
	}
	j := &Journal{sink: to, now: time.Now, turn: make(chan struct{}, 1), history: h}
	if err := j.activate(ctx, from, taking); err != nil {
		return nil, fmt.Errorf("take the journal of %s: %w", to.Run(), err)
	}
	return j, nil
}

func (t Taking) check() error {
	if t.Mode != New && t.Mode != Existing {
		return messages.Malformed.Because("a run is %s or %s", New, Existing)
	}
	return t.Lease.check()
}

// activate appends the activation at the replayed head, and replays what came between.
func (j *Journal) activate(ctx context.Context, from Source, t Taking) error {
	for n := 1; ; n++ {
		if err := j.may(t); err != nil {
			return err
		}
		head := j.history.Head()
		err := j.append(ctx, Record{Kind: Activation, Lease: t.Lease, ReplayedTo: head})
		switch {
		case !errors.Is(err, ErrLost):
			return err
		case n == replays:
			return messages.JournalMoving
		}
		if t.Still != nil {
			if err := t.Still(ctx); err != nil {
				return err
			}
		}
		if err := j.history.more(ctx, from); err != nil {
			return err
		}
	}
}

// may refuses a taking that the journal, as it was replayed, rules out.
func (j *Journal) may(t Taking) error {
	h := j.history
	switch {
	case len(h.Records) == 0 && t.Mode == Existing:
		return messages.JournalEmpty
	case len(h.Records) == 0:
		return nil
	case t.Mode == New && h.recovers(t.Lease):
		return nil
	case t.Mode == New:
		return messages.JournalStarted
	case h.stale(t.Lease):
		return messages.LeaseStale
	case h.State.Outcome != "":
		return messages.RunEnded
	}
	return nil
}

// recovers reports whether all there is are the activations of this very lease: a new
// run, whose driver did not hear that it had begun it.
func (h *History) recovers(lease Lease) bool {
	return !slices.ContainsFunc(h.Records, func(r Record) bool { return r.Kind != Activation || r.Lease != lease })
}

// append writes one record behind the head, and remembers it.
func (j *Journal) append(ctx context.Context, r Record) error {
	h := j.history
	r.Run, r.N, r.At = h.Run, uint64(len(h.Records)), j.now()
	data, err := Encode(r)
	if err != nil {
		return err
	}
	sequence, err := j.sink.Append(ctx, data, h.Head())
	switch {
	case errors.Is(err, ErrLost):
		return err
	case err != nil:
		return messages.JournalStalled.From(err)
	}
	r.Sequence, r.At = sequence, time.UnixMilli(r.At.UnixMilli()).UTC()
	return h.add(r)
}

// Append writes an entry, whatever marshals to a JSON object, and returns when it is
// durable. What it marshals to is taken when it is called. An entry that cannot be
// written is messages.Malformed, and nothing is changed by it; neither is by a ctx that
// ends while others append.
//
// Every other failure is final, and so the answer to every later call: RunEnded behind
// the last entry, JournalSuperseded when another driver took the journal, JournalStalled
// when no acknowledgement came, JournalClosed.
func (j *Journal) Append(ctx context.Context, entry any) (Record, error) {
	raw, err := canonical(entry)
	if err == nil && !isObject(raw) {
		err = errors.New("it is no JSON object, or has a name twice")
	}
	if err != nil {
		return Record{}, messages.Malformed.Because("an entry cannot be written: %v", err)
	}
	select {
	case j.turn <- struct{}{}:
		defer func() { <-j.turn }()
	case <-ctx.Done():
		return Record{}, context.Cause(ctx)
	}
	if j.over != nil {
		return Record{}, j.over
	}
	if ctx.Err() != nil {
		return Record{}, context.Cause(ctx)
	}
	return j.step(ctx, raw)
}

// step appends one entry. A caller who leaves does not make what became of it unknown.
func (j *Journal) step(ctx context.Context, raw json.RawMessage) (Record, error) {
	if err := j.history.State.try(raw); err != nil {
		if errors.Is(err, messages.RunEnded) {
			j.over = err
		}
		return Record{}, err
	}
	err := j.append(context.WithoutCancel(ctx), Record{Kind: Step, Entry: raw})
	switch {
	case err == nil:
		return j.last(), nil
	case errors.Is(err, messages.Malformed):
		return Record{}, err
	case errors.Is(err, ErrLost):
		err = messages.JournalSuperseded
	}
	j.over = fmt.Errorf("journal of %s: %w", j.history.Run, err)
	return Record{}, j.over
}

func (j *Journal) last() Record {
	r := j.history.Records[len(j.history.Records)-1]
	r.Entry = slices.Clone(r.Entry)
	return r
}

// History is what the journal holds, as far as this driver knows.
func (j *Journal) History() History {
	j.turn <- struct{}{}
	defer func() { <-j.turn }()
	h := *j.history
	h.Records, h.State = slices.Clone(h.Records), h.State.clone()
	return h
}

// Close ends appending, once what is under way has ended.
func (j *Journal) Close() {
	j.turn <- struct{}{}
	defer func() { <-j.turn }()
	if j.over == nil {
		j.over = messages.JournalClosed
	}
}
