package provisioning

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sync/errgroup"

	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Name of the sweeper, which is also its path.
const Name = "provisioning"

const (
	// holdsEvery is how often it is asked whether this process holds the plane.
	holdsEvery = 250 * time.Millisecond
	// sweepEvery is when it is looked although nobody has said that there is anything: what
	// other processes revoke is not told here.
	sweepEvery = 15 * time.Second
	// lookAgain is the same while something could not be settled.
	lookAgain = 2 * time.Second
	// restFor is how much longer than a sweep took is waited at least: a sweep that reads a
	// lot may take a twentieth of the time.
	restFor = 20
	// atOnce is how many are settled together.
	atOnce = 8
	// settleWithin bounds one footprint in one sweep: two calls, and the ledger.
	settleWithin = 2 * time.Minute
)

// Spec describes the sweeper as a child of its space.
func (p *Provisioning) Spec() supervisor.Spec {
	return supervisor.Spec{Name: Name, New: func(life *supervisor.Life) actor.Actor { return &sweeper{life: life, of: p, over: map[string]bool{}} }}
}

// sweeper is one life. All but Receive runs on its one task.
type sweeper struct {
	life *supervisor.Life
	of   *Provisioning
	// over are the keys of what is over for ever, and need not be read again.
	over map[string]bool

	stop   context.CancelFunc
	ending chan struct{} // closed when the task has ended
}

// Receive opens and closes; nobody asks anything.
func (s *sweeper) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *supervisor.Open:
		swept, stop := context.WithCancel(s.life.Context())
		s.stop, s.ending = stop, make(chan struct{})
		s.life.Go("sweep", func(context.Context) {
			defer close(s.ending)
			s.run(swept)
		})
		s.life.Opened()
	case *supervisor.Drain:
		s.life.Drained(nil)
	case *supervisor.Close:
		stop, ending := s.stop, s.ending
		s.life.Go("close", func(context.Context) {
			if stop != nil {
				stop()
				<-ending
			}
			s.life.ClosedWith(nil)
		})
	}
}

// run sweeps when this process has got the plane, when there is something to settle, and
// every now and then.
func (s *sweeper) run(ctx context.Context) {
	retired := make(chan struct{}, 1) // one word is enough
	s.life.Go("listen", func(context.Context) { s.listen(ctx, retired) })
	ticker := time.NewTicker(holdsEvery)
	defer ticker.Stop()
	var swept uint64 // the claim under which it was swept last
	var due time.Time
	for {
		told := false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.of.look:
			told = true
		case <-retired:
			told = true
		}
		generation, holds := s.of.config.Holder()
		switch {
		case !holds:
			swept = 0
			continue
		case generation == swept && !told && time.Now().Before(due):
			continue
		}
		began := time.Now()
		left := s.sweep(ctx)
		swept = generation
		pause := sweepEvery
		if left {
			pause = lookAgain
		}
		due = time.Now().Add(max(pause, restFor*time.Since(began)))
	}
}

// listen tells when an incarnation may have ended: the actor that ends it has.
func (s *sweeper) listen(ctx context.Context, retired chan<- struct{}) {
	events := s.life.Tree().Events(256)
	defer events.Close()
	for event := range events.All(ctx) {
		switch e := event.(type) {
		case supervisor.Removed:
			if !strings.HasPrefix(e.Path, s.of.config.Retirements+"/") {
				continue
			}
		case supervisor.Missed:
		default:
			continue
		}
		select {
		case retired <- struct{}{}:
		default:
		}
	}
}

// sweep settles every footprint that is not over, and reports whether some could not be.
// One that cannot be settled stops no other.
func (s *sweeper) sweep(ctx context.Context) (left bool) {
	sagas := s.of.over(s.life.Tree())
	keys, err := sagas.Journal.Keys(ctx, ledger.AllProvisions)
	if err != nil {
		return true // it is looked again; what keeps the ledger from being read, its actors say
	}
	var mu sync.Mutex // guards what follows
	var ended []string
	var settling errgroup.Group // none fails: what one says is noted
	settling.SetLimit(atOnce)
	for _, lives := range s.perPrincipal(keys) {
		settling.Go(func() error {
			for _, key := range lives {
				final, err := s.settle(ctx, sagas, key)
				mu.Lock()
				left = left || err != nil && messages.Describe(err).Retryable
				if final {
					ended = append(ended, key)
				}
				mu.Unlock()
			}
			return nil
		})
	}
	_ = settling.Wait()
	for _, key := range ended {
		s.over[key] = true
	}
	return left
}

// perPrincipal parts the keys of what is not over: those of one principal are settled one
// after another. Keys are sorted, and begin with the principal.
func (s *sweeper) perPrincipal(keys []string) (lives [][]string) {
	var last string
	for _, key := range keys {
		if s.over[key] {
			continue
		}
		of := strings.Join(strings.SplitN(key, ".", 4)[:3], ".")
		if of != last {
			lives, last = append(lives, nil), of
		}
		lives[len(lives)-1] = append(lives[len(lives)-1], key)
	}
	return lives
}

func (s *sweeper) settle(ctx context.Context, sagas *footprint.Sagas, key string) (final bool, err error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	if final, err = sagas.Settle(limited, key); ctx.Err() == nil {
		s.note(key, err)
	}
	return final, err
}

// note shows what could not be settled, unless it only waits for something that comes, or
// is a row that cannot be read: those the writer shows.
func (s *sweeper) note(key string, err error) {
	text := ""
	if entry := messages.Describe(err); err != nil && entry != messages.EnrolmentPending && entry != messages.RowCorrupt {
		text = "the footprint at " + key + " is not settled: " + messages.PublicText(err)
	}
	if s.of.troubles.note(key, text) && text != "" {
		s.life.Log().Warn("a footprint could not be settled", "key", key, "error", err)
	}
}
