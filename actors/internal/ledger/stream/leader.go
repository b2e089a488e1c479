package stream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// What makes a read one to decide by.
const (
	// beatEvery is how often the leader is proved.
	beatEvery = time.Second
	// beatReach is how long before a read the beat may have been sent. A new leader
	// needs at least 4 s without the old one.
	beatReach = 2 * time.Second
	// readReach is how long after its beat was sent a read may be answered.
	readReach = 3500 * time.Millisecond
	// beatLapse is more than lies between a beat and the acknowledgement of the next
	// under one leader, and less than the 4 s that a new one needs.
	beatLapse = 2500 * time.Millisecond
	// doubtFor is how long a leader that is cut off may take itself for one: it looks
	// every 10 s whether it has heard of a quorum in the last 10. Whenever it comes back
	// in that time, it answers reads until it has heard the new one, who takes the beats.
	doubtFor = 25 * time.Second
	// readTimeout bounds one read.
	readTimeout = time.Second
	// DefaultProveEvery is how often the stream's shape is proved again.
	DefaultProveEvery = 5 * time.Second
)

// ReaderConfig says what a LeaderReader proves.
type ReaderConfig struct {
	Config
	// Remembered is the installation the stream must be.
	Remembered Installation
	// ProveEvery is how often stream and shape are proved again; 0 is
	// DefaultProveEvery. A drift is noticed at most this much later.
	ProveEvery time.Duration
	// OnChange, if set, is told each time that reads become usable (nil) or cease to be,
	// and why. It is called from Run's goroutines and must not block.
	OnChange func(error)
}

// LeaderReader is a ledger.Source whose answers a decision may rest on: each comes
// from the leader of the very stream that was remembered, proved on the same
// connection. Whatever it cannot prove is messages.Unproved, at once; nothing is
// retried. It answers only while Run runs.
//
// With one replica the leader is beyond doubt. With more, this connection writes a
// beat each second, and a read is usable if a beat sent at most 2 s before it began
// was acknowledged. A reconnect voids beats and proof. For 25 s after the first beat, and
// after a lapse of beats in which the leader may have changed, two servers may take
// themselves for it; then every row that is read is confirmed by a beat pinned to it, which
// only the one that leads can take.
//
// It is safe for concurrent use. Rows may be shared between callers, who must not
// alter their values.
type LeaderReader struct {
	client client
	beater client // the same connection, with a beat's patience
	cfg    ReaderConfig
	shared shared
	// life counts the lives of the connection: what was proved in one is void in the
	// next. The library counts before it speaks to the new server.
	life     func() uint64
	doubtFor time.Duration

	mu     sync.Mutex
	proof  proof
	beat   proof
	beats  uint64
	beatAt uint64    // the revision of beat
	since  time.Time // the first beat of this life, or after a lapse
	shown  error
	unsaid bool
}

// proof is something that held at a time, on one life of the connection.
type proof struct {
	at   time.Time
	life uint64
	err  error
}

var _ ledger.Source = (*LeaderReader)(nil)

var errIdle = errors.New("the reader does not run")

// NewLeaderReader reads over conn, which stays the caller's. It starts nothing.
func NewLeaderReader(conn *nats.Conn, cfg ReaderConfig) *LeaderReader {
	if cfg.ProveEvery <= 0 {
		cfg.ProveEvery = DefaultProveEvery
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = readTimeout
	}
	beater := client{conn: conn, cfg: cfg.Config}
	beater.cfg.Timeout = beatReach
	return &LeaderReader{client: client{conn: conn, cfg: cfg.Config}, beater: beater, cfg: cfg, unsaid: true,
		life: func() uint64 { return conn.Stats().Reconnects }, doubtFor: doubtFor,
		proof: proof{err: errIdle}, beat: proof{err: errIdle}}
}

// Run proves and beats until ctx ends, then waits for every read under way. It is
// called once.
func (r *LeaderReader) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.shared.open(ctx)
	var tending sync.WaitGroup
	tending.Go(func() { r.every(ctx, r.cfg.ProveEvery, r.proveOnce) })
	if !r.cfg.proved() {
		tending.Go(func() { r.beatOn(ctx) })
	}
	tending.Wait()
	r.shared.close()
}

// Get reads one row. Callers who ask for the same key share a read, if it had not
// begun when they asked.
func (r *LeaderReader) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	return r.shared.get(ctx, key, r.read)
}

// List names the keys that match filter.
func (r *LeaderReader) List(ctx context.Context, filter string) (keys []string, err error) {
	err = r.guarded(func() error {
		keys, err = r.client.list(ctx, filter, r.reached())
		return err
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// State is nil while reads are usable, and otherwise says why they are not.
func (r *LeaderReader) State() error {
	_, err := r.usable(time.Now(), r.life())
	return err
}

func (r *LeaderReader) read(ctx context.Context, key string) (row ledger.Row, found bool, err error) {
	err = r.guarded(func() error {
		if r.doubtful(time.Now()) {
			row, found, err = r.client.confirmed(ctx, key, r.count)
		} else {
			row, found, err = r.client.get(ctx, key)
		}
		return err
	})
	if err != nil {
		return ledger.Row{}, false, err
	}
	return row, found, nil
}

// guarded asks only while the leader is proved, and lets an answer pass only if the
// proof still reached it.
func (r *LeaderReader) guarded(ask func() error) error {
	began, life := time.Now(), r.life()
	until, err := r.usable(began, life)
	if err != nil {
		return err
	}
	if err := ask(); err != nil {
		if errors.Is(err, messages.BrokerAway) {
			return messages.Unproved.From(err)
		}
		return err
	}
	switch {
	case r.life() != life:
		return messages.Unproved.Because("the connection was lost meanwhile")
	case time.Now().After(until):
		return messages.Unproved.Because("the answer came too late")
	}
	return nil
}

// usable says until when an answer to a read that begins now may be relied on.
func (r *LeaderReader) usable(began time.Time, life uint64) (until time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.proof.err != nil:
		return until, messages.Unproved.From(r.proof.err)
	case r.proof.life != life || began.Sub(r.proof.at) > 3*r.cfg.ProveEvery:
		return until, messages.Unproved.Because("the stream is not proved")
	case r.cfg.proved():
		return began.Add(readReach), nil
	case r.beat.life != life || r.beat.err != nil || began.Sub(r.beat.at) > beatReach:
		return until, messages.Unproved.Because("no beat was acknowledged")
	}
	return r.beat.at.Add(readReach), nil
}

// doubtful reports whether another server may still take itself for the leader.
func (r *LeaderReader) doubtful(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.cfg.proved() && now.Sub(r.since) < r.doubtFor
}

// reached is a revision that whoever leads has; 0 with one replica.
func (r *LeaderReader) reached() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.beatAt
}

// proveOnce proves stream and shape. An answer that did not come leaves the last
// proof to age; a refusal voids it at once.
func (r *LeaderReader) proveOnce(ctx context.Context) {
	began, life := time.Now(), r.life()
	_, err := r.client.prove(ctx, r.cfg.Remembered)
	if ctx.Err() == nil && (err == nil || !errors.Is(err, messages.BrokerAway)) {
		r.mu.Lock()
		r.proof = proof{at: began, life: life, err: err}
		r.mu.Unlock()
	}
	r.tell()
}

// tell reports a change of what State says.
func (r *LeaderReader) tell() {
	if r.cfg.OnChange == nil {
		return
	}
	state := r.State()
	r.mu.Lock()
	changed := r.unsaid || (state == nil) != (r.shown == nil)
	r.shown, r.unsaid = state, false
	r.mu.Unlock()
	if changed {
		r.cfg.OnChange(state)
	}
}
