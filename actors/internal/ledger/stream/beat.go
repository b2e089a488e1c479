package stream

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// every does what is to be done now, then at each interval, and at once when the
// connection has come back, until ctx ends.
func (r *LeaderReader) every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	back := r.client.conn.StatusChanged(nats.CONNECTED)
	defer r.client.conn.RemoveStatusListener(back)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		do(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-back:
		}
	}
}

// beatOn beats until ctx ends. Beats do not wait for each other: one whose answer
// is slow is still worth something while it is younger than beatReach.
func (r *LeaderReader) beatOn(ctx context.Context) {
	var under sync.WaitGroup
	defer under.Wait()
	r.every(ctx, beatEvery, func(ctx context.Context) {
		count := r.count()
		under.Go(func() { r.beatOnce(ctx, count) })
	})
}

// count numbers the next beat.
func (r *LeaderReader) count() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beats++
	return r.beats
}

// beatOnce sends one beat and keeps it if it was acknowledged in the life of the
// connection in which it was sent.
func (r *LeaderReader) beatOnce(ctx context.Context, count uint64) {
	sent, life := time.Now(), r.life()
	at, err := r.beater.beat(ctx, count)
	if err != nil || r.life() != life {
		r.tell()
		return
	}
	r.acknowledged(sent, life, at)
	r.tell()
}

// acknowledged keeps a beat, and notes when there was none before it or they had lapsed.
func (r *LeaderReader) acknowledged(sent time.Time, life, at uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.beat.err != nil || r.beat.life != life
	if first || time.Since(r.beat.at) > beatLapse {
		r.since = sent
	}
	if first || sent.After(r.beat.at) {
		r.beat, r.beatAt = proof{at: sent, life: life}, max(r.beatAt, at)
	}
}
