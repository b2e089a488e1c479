package callout

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

const (
	// leaveAfter is how long reads may fail before a responder leaves the group: what
	// it hears it could not answer, while another process may.
	leaveAfter = 2 * time.Second
	// probeEvery lies between two questions whether reads work again, and
	// probeWithin bounds the wait for an answer.
	probeEvery  = 250 * time.Millisecond
	probeWithin = time.Second
)

// nobody is whom a probe asks about; what the answer says does not matter. It must be
// a principal all the same, or it would be refused without a look at the authority.
var nobody = messages.Principal{Owner: "u_aaaaaaaaaaaaaaaaaaaaaaaaaa", Actor: "nobody"}

// ability watches whether a responder can answer, and takes it out of the group
// while it cannot. Decisions tell how their reads went; from the first failure on
// the reader is asked again and again, so that the end is noticed also where nobody
// connects.
type ability struct {
	life   *supervisor.Life
	reader supervisor.Ref
	intake *intake
	fail   func(error) // ends the life

	mu      sync.Mutex
	since   time.Time // when the failures began; zero while reads work
	watched bool
}

// noted takes how one read ended.
func (b *ability) noted(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if usable(err) {
		b.since = time.Time{}
		return
	}
	if b.since.IsZero() {
		b.since = time.Now()
	}
	if !b.watched {
		b.watched = true
		b.life.Go("watch the reader", b.watch)
	}
}

// usable reports whether a read ended with something to decide by, a refusal that
// will not pass included.
func usable(err error) bool {
	return err == nil || !messages.Describe(err).Retryable && !errors.Is(err, context.DeadlineExceeded)
}

// failing is how long reads have failed, 0 while they work.
func (b *ability) failing() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since.IsZero() {
		return 0
	}
	return time.Since(b.since)
}

// watch asks the reader until it works, leaving the group meanwhile if that takes
// too long.
func (b *ability) watch(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	left := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		b.probe(ctx)
		switch failing := b.failing(); {
		case failing >= leaveAfter && !left:
			b.life.Log().Warn("the authority cannot be read; leaving the responders' group", "for", failing)
			b.intake.suspend(ctx)
			left = true
		case failing == 0 && left:
			if err := b.intake.resume(ctx); err != nil {
				b.fail(err)
				return
			}
			b.life.Log().Info("the authority can be read again; back in the responders' group")
			left = false
		}
		if !left && b.rest() {
			return
		}
	}
}

// probe asks the reader once.
func (b *ability) probe(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	_, err := client.Ask[messages.Authority](limited, b.reader, messages.ReadAuthority{Principal: nobody, Head: true})
	if ctx.Err() == nil {
		b.noted(err)
	}
}

// rest ends the watch if reads work; the next failure begins another.
func (b *ability) rest() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watched = !b.since.IsZero()
	return !b.watched
}

// suspend takes every connection out of the group, answers what was accepted, and
// keeps new connections out until resume.
func (in *intake) suspend(ctx context.Context) {
	in.mu.Lock()
	in.suspended = true
	var links []*link
	for _, l := range in.open {
		links = append(links, l)
	}
	in.mu.Unlock()
	for _, l := range links {
		_ = l.drain(ctx) // ctx ended, and the life with it
	}
}

// resume puts every connection back into the group. What has been lost since is not
// missed; any other failure is the responder's.
func (in *intake) resume(ctx context.Context) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.suspended = false
	if in.shutting {
		return nil
	}
	for conn := range in.open {
		l, err := in.subscribe(ctx, conn)
		if err != nil {
			return err
		}
		in.open[conn] = l
	}
	return nil
}
