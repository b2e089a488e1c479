package stream

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/contract"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
)

// grouped is a backend in memory behind lanes, whose batches meet what plan says.
type grouped struct {
	*memory.Backend
	lanes *Lanes
	plan  func() outcome

	mu            sync.Mutex
	sent, largest int
	// landing are writes whose sender was told nothing, and which land later.
	landing [][]ledger.Write
}

// outcome is what becomes of one batch that is sent.
type outcome int

const (
	landed outcome = iota
	answerLost
	requestLost
	landsLater
	refusedForNow
	contended
)

func newGrouped(plan func() outcome) *grouped {
	return &grouped{Backend: memory.New(), lanes: NewLanes(2), plan: plan}
}

func (g *grouped) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	if len(b.Writes) == 1 || b.Check() != nil {
		return g.Backend.Send(ctx, b)
	}
	if ctx.Err() != nil {
		return 0, ledger.ErrNotApplied
	}
	return g.lanes.send(ctx, g, b.Writes)
}

func (g *grouped) width() int { return 2 }

func (g *grouped) publishBatch(ctx context.Context, writes []ledger.Write) (uint64, error) {
	for range 20 {
		runtime.Gosched() // others come meanwhile
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent++
	g.largest = max(g.largest, len(writes))
	send := func(writes []ledger.Write) (uint64, error) {
		return g.Backend.Send(context.WithoutCancel(ctx), ledger.Batch{Writes: writes})
	}
	fate := g.plan()
	if fate != landsLater && len(g.landing) > 0 { // the earlier one comes through at last
		_, _ = send(g.landing[0])
		g.landing = g.landing[1:]
	}
	switch fate {
	case answerLost:
		_, _ = send(writes)
		return 0, ledger.ErrUnknown
	case requestLost:
		return 0, ledger.ErrUnknown
	case landsLater:
		g.landing = append(g.landing, writes)
		return 0, ledger.ErrUnknown
	case refusedForNow:
		return 0, ledger.ErrNotApplied
	case contended:
		return 0, ledger.ErrContended
	}
	return send(writes)
}

func untroubled() outcome { return landed }

func TestContractInGroups(t *testing.T) {
	contract.Backend(t, func(*testing.T) contract.Subject {
		g := newGrouped(untroubled)
		return contract.Subject{Backend: g, Mark: func(_ *testing.T, key string) { g.Mark(key) }}
	})
}

func TestTransitionsInGroups(t *testing.T) {
	contract.Transitions(t, 200, func(*testing.T) contract.Subject { return contract.Subject{Backend: newGrouped(untroubled)} })
}

// TestTransitionsInTroubledGroups has every second batch answered wrongly, late or
// not at all.
func TestTransitionsInTroubledGroups(t *testing.T) {
	contract.Transitions(t, 60, func(*testing.T) contract.Subject {
		n := 0
		return contract.Subject{Backend: newGrouped(func() outcome { n++; return outcome(n % int(2*contended+1) / 2) })}
	})
}

func TestACrowdInGroups(t *testing.T) {
	g := newGrouped(untroubled)
	contract.FirstExchanges(t, 300, time.Minute, func(*testing.T) contract.Subject { return contract.Subject{Backend: g} })
	if g.largest <= 3 {
		t.Errorf("no two batches travelled together, of %d", g.sent)
	}
}

// TestEveryCallerIsToldTheTruth has a crowd write batches of their own, some beside
// a row that several want, while the stream answers as it likes: who is told yes
// finds his batch at the revision he was told, who is told no finds nothing.
func TestEveryCallerIsToldTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fates := rapid.SliceOfN(rapid.IntRange(0, int(contended)), 0, 30).Draw(t, "fates")
		writers := rapid.IntRange(1, 12).Draw(t, "writers")
		g := newGrouped(func() (fate outcome) {
			if len(fates) > 0 {
				fate, fates = outcome(fates[0]), fates[1:]
			}
			return fate
		})
		store := ledger.NewStore(g, ledger.Patience{First: time.Microsecond, Most: 10 * time.Microsecond, Budget: time.Minute})
		wants := rapid.SliceOfN(rapid.IntRange(0, 3), writers, writers).Draw(t, "shared rows")
		answers := make([]told, writers)
		var writing sync.WaitGroup
		for i := range writers {
			writing.Go(func() {
				last, err := store.Apply(context.Background(), batchOf(i, wants[i]))
				answers[i] = told{last, err}
			})
		}
		writing.Wait()
		for i, a := range answers {
			own, found, _ := g.Get(context.Background(), fmt.Sprint("own.", i))
			beside, _, _ := g.Get(context.Background(), besides(i, wants[i]))
			whole := found && string(beside.Value) == strconv.Itoa(i) && beside.Revision == own.Revision+1
			switch {
			case a.err == nil && (!whole || beside.Revision != a.last):
				t.Errorf("writer %d was told %d; its rows stand at %d and %d", i, a.last, own.Revision, beside.Revision)
			case a.err != nil && (found || !errors.Is(a.err, ledger.ErrLost)):
				t.Errorf("writer %d was told %v; its row stands: %v", i, a.err, found)
			}
		}
	})
}

// besides is the second row of a writer: his own, or one that others want too.
func besides(writer, shared int) string {
	if shared == 0 {
		return fmt.Sprint("beside.", writer)
	}
	return fmt.Sprint("shared.", shared)
}

func batchOf(writer, shared int) ledger.Batch {
	value := []byte(strconv.Itoa(writer))
	own := fmt.Sprint("own.", writer)
	return ledger.Batch{Writes: []ledger.Write{ledger.Create(own, value), ledger.Create(besides(writer, shared), value)}, Witness: own}
}
