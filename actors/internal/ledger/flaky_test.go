package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
)

// fate is what happens to one attempt of a write.
type fate int

const (
	answered fate = iota
	lostBefore
	lostAfter
	contended
	refusedForNow
	answeredByOldLeader
	diesBefore
	diesAfter
)

var fates = map[fate]string{answered: "answered", lostBefore: "request lost", lostAfter: "answer lost",
	contended: "contended", refusedForNow: "refused for now", answeredByOldLeader: "called lost by a leader that lags",
	diesBefore: "process dies before", diesAfter: "process dies after"}

func (f fate) String() string { return fates[f] }

// survived are the fates after which the caller goes on.
var survived = []fate{lostBefore, lostAfter, contended, refusedForNow, answeredByOldLeader}

var errDead = errors.New("the process is dead")

// flaky is a backend that meets its writes with what plan says. Once the process
// is dead it answers nothing more.
type flaky struct {
	ledger.Backend
	plan func(n int) fate

	mu    sync.Mutex
	sends int
	dead  bool
}

func (f *flaky) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	f.mu.Lock()
	fate := f.plan(f.sends)
	f.sends++
	dead := f.dead
	f.dead = dead || fate == diesBefore || fate == diesAfter
	f.mu.Unlock()
	if dead {
		return 0, errDead
	}
	switch fate {
	case lostBefore:
		return 0, ledger.ErrUnknown
	case contended:
		return 0, ledger.ErrContended
	case refusedForNow:
		return 0, ledger.ErrNotApplied
	case answeredByOldLeader:
		return 0, fmt.Errorf("%w: says a leader that lags", ledger.ErrLost)
	case diesBefore:
		return 0, errDead
	}
	last, err := f.Backend.Send(ctx, b)
	switch fate {
	case lostAfter:
		return 0, ledger.ErrUnknown
	case diesAfter:
		return 0, errDead
	}
	return last, err
}

func (f *flaky) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	if f.isDead() {
		return ledger.Row{}, false, errDead
	}
	return f.Backend.Get(ctx, key)
}

func (f *flaky) List(ctx context.Context, filter string) ([]string, error) {
	if f.isDead() {
		return nil, errDead
	}
	return f.Backend.List(ctx, filter)
}

func (f *flaky) Sync(ctx context.Context) error {
	if f.isDead() {
		return errDead
	}
	return f.Backend.Sync(ctx)
}

func (f *flaky) isDead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// nth meets one attempt with a fate, and every other with an answer.
func nth(at int, f fate) func(int) fate {
	return func(n int) fate {
		if n == at {
			return f
		}
		return answered
	}
}

func untroubled(int) fate { return answered }
