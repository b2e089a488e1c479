package ledger

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// Patience says how long a write is tried.
type Patience struct {
	// First and Most bound the pauses between attempts, which double with full jitter.
	First, Most time.Duration
	// Budget bounds how long a write is repeated against load and contention. A write
	// in doubt is repeated until the caller's context ends, whatever the budget.
	Budget time.Duration
}

// DefaultPatience suits a stream that takes some hundred batches a second.
func DefaultPatience() Patience {
	return Patience{First: 2 * time.Millisecond, Most: 200 * time.Millisecond, Budget: 8 * time.Second}
}

// Store is a Backend with patience: it repeats what may be repeated, and answers
// only with what is certain.
type Store struct {
	backend  Backend
	patience Patience
}

var _ Source = (*Store)(nil)

// NewStore wraps backend. It is safe for concurrent use if backend is.
func NewStore(backend Backend, patience Patience) *Store {
	return &Store{backend: backend, patience: patience}
}

// Get reads one row; while no leader answers it tries again within the budget.
func (s *Store) Get(ctx context.Context, key string) (Row, bool, error) {
	turn := s.begin()
	for {
		row, found, err := s.backend.Get(ctx, key)
		if !errors.Is(err, messages.BrokerAway) || !turn.pause(ctx) {
			return row, found, err
		}
	}
}

// List names the keys that match filter; while no leader answers it tries again
// within the budget.
func (s *Store) List(ctx context.Context, filter string) ([]string, error) {
	turn := s.begin()
	for {
		keys, err := s.backend.List(ctx, filter)
		if !errors.Is(err, messages.BrokerAway) || !turn.pause(ctx) {
			return keys, err
		}
	}
}

// Sync proves the leader, so that what is read next may be relied on where a write
// would not protect it: see Backend.
func (s *Store) Sync(ctx context.Context) error {
	turn := s.begin()
	for {
		err := s.backend.Sync(ctx)
		if !errors.Is(err, messages.BrokerAway) || !turn.pause(ctx) {
			return err
		}
	}
}

// Apply writes b, all of it or nothing, and returns the revision of its last row
// once it is durable.
//
// It fails with ErrLost when a pin no longer holds (ErrOvertaken: perhaps because
// of ourselves), with messages.Contended when the budget was spent on load, and
// with messages.OutcomeUnknown when ctx ended with an answer still owed. Nothing
// else leaves the outcome in doubt.
func (s *Store) Apply(ctx context.Context, b Batch) (uint64, error) {
	if err := b.Check(); err != nil {
		return 0, err
	}
	turn := s.begin()
	doubt := false
	for {
		last, err := s.backend.Send(ctx, b)
		switch {
		case err == nil:
			return last, nil
		case errors.Is(err, ErrUnknown):
			doubt = true
		case errors.Is(err, ErrLost), errors.Is(err, ErrContended):
			if s.gone(ctx, b, err) {
				last, err := s.settle(ctx, b, doubt)
				switch {
				case err == nil, errors.Is(err, ErrLost):
					return last, err
				case !errors.Is(err, messages.BrokerAway):
					return 0, given(doubt, err)
				}
			}
		case !errors.Is(err, ErrNotApplied):
			return 0, given(doubt, err)
		}
		turn.endless = doubt
		if !turn.pause(ctx) {
			// The text of the refusal alone: it proved nothing, and must not be taken for ErrLost.
			return 0, given(doubt, messages.Contended.From(errors.New(err.Error())))
		}
	}
}

// given is the error of a write that is given up.
func given(doubt bool, err error) error {
	if doubt {
		return messages.OutcomeUnknown.From(err)
	}
	return err
}

// gone reports whether b can never land any more, after it was refused with why. If
// the stream called it lost and the pins seem to hold, one of the two answers came
// from a leader that lags: the pins are read again under a proved one. A failed read
// leaves it open.
func (s *Store) gone(ctx context.Context, b Batch, why error) bool {
	moved, err := s.moved(ctx, b)
	if err == nil && !moved && errors.Is(why, ErrLost) && s.backend.Sync(ctx) == nil {
		moved, err = s.moved(ctx, b)
	}
	return err == nil && moved
}

// moved reports whether some pin of b is past. A revision only grows, so a yes is
// for ever, whoever answered; a no may come from a leader that lags.
func (s *Store) moved(ctx context.Context, b Batch) (bool, error) {
	for _, w := range b.Writes {
		pin := w.pinned()
		row, found, err := s.backend.Get(ctx, pin.Key)
		if err != nil {
			return false, err
		}
		if found && row.Revision > pin.Revision {
			return true, nil
		}
	}
	return false, nil
}

// settle finds out what became of a batch whose pins are past. Without doubt it
// is lost. In doubt the witness tells, read under a proved leader: a read that
// lags would call lost what has landed.
func (s *Store) settle(ctx context.Context, b Batch, doubt bool) (uint64, error) {
	if !doubt {
		return 0, ErrLost
	}
	if b.Witness == "" {
		return 0, ErrOvertaken
	}
	if err := s.backend.Sync(ctx); err != nil {
		return 0, err
	}
	row, found, err := s.backend.Get(ctx, b.Witness)
	if err != nil {
		return 0, err
	}
	for i, w := range b.Writes {
		if w.Key != b.Witness {
			continue
		}
		if found && bytes.Equal(row.Value, w.Value) {
			return row.Revision + uint64(len(b.Writes)-1-i), nil
		}
		if w.Pin.Key == "" && row.Revision == w.Pin.Revision { // the zero Row of absence included
			return 0, ErrLost
		}
	}
	return 0, ErrOvertaken
}

// decide repeats step, which reads, decides and writes, until it is decided:
// when its write is lost, it reads again. A refusal must rest on what the leader
// holds now, since no write is there to protect it: it is decided a second time,
// under a proved leader.
func (s *Store) decide(ctx context.Context, step func(context.Context) error) error {
	var turn *turn // begins with the first loss: what was waited for before is nobody's contention
	for proved := false; ; {
		err := step(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrLost):
			proved = false
			if turn == nil {
				turn = s.begin()
			}
			if !turn.pause(ctx) {
				return messages.Contended.From(err)
			}
		case proved || messages.Describe(err).Retryable:
			return err
		default:
			if err := s.Sync(ctx); err != nil {
				return err
			}
			proved = true
		}
	}
}

// turn counts the attempts of one call.
type turn struct {
	patience Patience
	deadline time.Time
	next     time.Duration
	endless  bool
}

func (s *Store) begin() *turn {
	return &turn{patience: s.patience, deadline: time.Now().Add(s.patience.Budget), next: s.patience.First}
}

// pause waits before the next attempt. It reports false when there is none: ctx
// ended, or the budget is spent.
func (t *turn) pause(ctx context.Context) bool {
	if ctx.Err() != nil || (!t.endless && time.Now().After(t.deadline)) {
		return false
	}
	wait := time.NewTimer(rand.N(t.next) + 1)
	defer wait.Stop()
	t.next = min(2*t.next, t.patience.Most)
	select {
	case <-ctx.Done():
		return false
	case <-wait.C:
		return true
	}
}
