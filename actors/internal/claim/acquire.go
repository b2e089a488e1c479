package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// attempts bounds how often one Acquire writes: who loses twice has lost to
// somebody.
const attempts = 2

// Config is what it takes to claim the plane.
type Config struct {
	// Store is the authority stream, over the barrier's connection.
	Store *ledger.Store
	// Oracle tells whether a former holder is gone.
	Oracle Oracle
	// Run remembers what this process claimed; there is one per process and space.
	Run *Run
	// Ledger and Records are the connections of this process's scanners. Both are open,
	// never reconnect and have done nothing yet.
	Ledger, Records messages.ConnectionTuple
	// Host says to operators where this process runs.
	Host string
	// ServersLost are the names of servers that the operator gave up for good: a
	// connection of which nothing is known counts as gone if it was on one of them.
	ServersLost []string
	// Now is the clock that stamps the claim; nil is the system's.
	Now func() time.Time
	// NewID names claims and writes; nil is names.NewUID.
	NewID func() string
}

// Acquire makes the plane this process's, or says why not:
//
//   - no row, or one that was released: it is ours at once.
//   - a row that this process wrote in this run: taken back without asking. Whoever
//     used it lands nothing any more; his connections are Held.Former's.
//   - a row of another holder: ours if both his connections are gone.
//
// Refused with messages.ClaimCorrupt, ClaimLivePeer, ClaimUnknown or
// ClaimConcurrent. It may also fail with messages.BrokerAway, Contended and
// OutcomeUnknown; a claim that lands after that is taken back by the next Acquire.
func Acquire(ctx context.Context, config Config) (*Held, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.NewID == nil {
		config.NewID = names.NewUID
	}
	a := &acquisition{Config: config, id: config.NewID()}
	for range attempts {
		held, err := a.attempt(ctx)
		if !errors.Is(err, ledger.ErrLost) {
			return held, err
		}
	}
	return nil, messages.ClaimConcurrent
}

// acquisition is one call of Acquire across its attempts.
type acquisition struct {
	Config
	id string
}

// attempt reads, judges and writes once. It fails with ledger.ErrLost when somebody
// else wrote in between.
func (a *acquisition) attempt(ctx context.Context) (*Held, error) {
	former, row, found, err := read(ctx, a.Store)
	if err == nil {
		a.Run.met(former, row.Revision)
	}
	switch {
	case err != nil:
		return nil, err
	case !found:
		return a.write(ctx, messages.Claim{}, ledger.Row{Key: ledger.PlaneKey})
	case former.State == messages.ClaimFree, a.Run.wrote(former.ID):
		return a.write(ctx, former, row)
	}
	if err := a.judge(ctx, former); err != nil {
		return nil, err
	}
	return a.write(ctx, former, row)
}

// write puts our claim over the row as it was read.
func (a *acquisition) write(ctx context.Context, former messages.Claim, over ledger.Row) (*Held, error) {
	next := messages.Claim{Generation: former.Generation + 1, ID: a.id, State: messages.ClaimHeld,
		Ledger: a.Ledger, Records: a.Records, OpenedAt: time.UnixMilli(a.Now().UnixMilli()).UTC(), Host: a.Host}
	value, err := ledger.EncodeClaim(next)
	if err != nil {
		return nil, err
	}
	a.Run.writes(a.id, over.Revision)
	revision, err := a.Store.Apply(ctx, ledger.Batch{
		Writes:  []ledger.Write{ledger.Replace(over, value)},
		Witness: ledger.PlaneKey, // it holds the claim's random id
	})
	if err != nil {
		return nil, fmt.Errorf("claim the plane: %w", err)
	}
	return newHeld(a.Config, next, revision, former), nil
}

// read reads the claim as the leader holds it. What cannot be a claim is
// messages.ClaimCorrupt.
func read(ctx context.Context, store *ledger.Store) (messages.Claim, ledger.Row, bool, error) {
	row, found, err := store.Get(ctx, ledger.PlaneKey)
	if err == nil && found {
		var held messages.Claim
		if held, err = ledger.DecodeClaim(row); err == nil {
			return held, row, true, nil
		}
	}
	if errors.Is(err, messages.RowCorrupt) {
		err = messages.ClaimCorrupt.From(err)
	}
	if err != nil {
		err = fmt.Errorf("read the claim: %w", err)
	}
	return messages.Claim{}, ledger.Row{}, false, err
}
