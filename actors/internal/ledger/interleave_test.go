package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

func fixedClock() time.Time { return someTime }

// thenRandom gives what is given, and then draws.
func thenRandom(given []string) func() string {
	return func() string {
		if len(given) == 0 {
			return names.NewUID()
		}
		next := given[0]
		given = given[1:]
		return next
	}
}

// turnstile holds every call of a backend until it is let through. Each operation
// comes through an entrance of its own.
type turnstile struct {
	backend ledger.Backend
	mu      sync.Mutex
	waiting []visitor
}

// visitor is one call that waits.
type visitor struct {
	entrance int
	turn     chan struct{}
}

// admit lets one of those through who wait, and reports whether there was one. They
// stand in the order of their entrances, whoever came first.
func (s *turnstile) admit(choice int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return false
	}
	slices.SortStableFunc(s.waiting, func(a, b visitor) int { return a.entrance - b.entrance })
	i := choice % len(s.waiting)
	close(s.waiting[i].turn)
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return true
}

// entrance is the backend as one operation reaches it.
type entrance struct {
	*turnstile
	number int
}

func (e entrance) pass() {
	v := visitor{entrance: e.number, turn: make(chan struct{})}
	e.mu.Lock()
	e.waiting = append(e.waiting, v)
	e.mu.Unlock()
	<-v.turn
}

func (e entrance) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	e.pass()
	return e.backend.Get(ctx, key)
}

func (e entrance) List(ctx context.Context, filter string) ([]string, error) {
	e.pass()
	return e.backend.List(ctx, filter)
}

func (e entrance) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	e.pass()
	return e.backend.Send(ctx, b)
}

func (e entrance) Sync(ctx context.Context) error {
	e.pass()
	return e.backend.Sync(ctx)
}

// run is one experiment: operations before, operations at once, who goes next at
// each point, and what each write meets.
type run struct {
	before, atOnce []op
	schedule       []int
	fates          []fate
}

// experiment performs r and says what cannot be explained; nothing is well.
func (r run) experiment(t *testing.T) (complaint error) {
	synctest.Test(t, func(t *testing.T) {
		backend := memory.New()
		for _, o := range r.before {
			if _, err := o.perform(t.Context(), backend); err != nil {
				complaint = fmt.Errorf("before: %v: %w", o, err)
				return
			}
		}
		start, err := found(t.Context(), backend)
		if err != nil {
			complaint = err
			return
		}
		told, err := r.interleave(t, backend)
		if err != nil {
			complaint = err
			return
		}
		end, err := found(t.Context(), backend)
		switch {
		case err != nil:
			complaint = err
		case !explained(start, r.atOnce, told, end):
			complaint = fmt.Errorf("no order explains it:\nfrom %+v\nops  %v\ntold %v\nto   %+v", start, r.atOnce, told, end)
		default:
			complaint = ledger.CheckInvariants(t.Context(), backend)
		}
	})
	return complaint
}

// interleave performs the operations at once, letting them through call by call.
func (r run) interleave(t *testing.T, backend ledger.Backend) ([]string, error) {
	gate := &turnstile{backend: &flaky{Backend: backend, plan: script(r.fates...)}}
	told := make([]string, len(r.atOnce))
	failed := letThrough(gate, r.schedule, len(r.atOnce), func(i int) (err error) {
		told[i], err = r.atOnce[i].perform(t.Context(), entrance{gate, i})
		return err
	})
	return told, errors.Join(failed...)
}

// letThrough does n things at once, and lets their calls through as scheduled,
// whenever all of them wait.
func letThrough(gate *turnstile, schedule []int, n int, do func(i int) error) []error {
	outcomes := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { outcomes[i] = do(i) })
	}
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	for turn := 0; ; turn++ {
		synctest.Wait()
		select {
		case <-done:
			return outcomes
		default:
		}
		choice := 0
		if turn < len(schedule) {
			choice = schedule[turn]
		}
		if !gate.admit(choice) {
			time.Sleep(time.Millisecond) // they pause; in the bubble this takes no time
		}
	}
}

func name(letter string, n int) string { return strings.Repeat(letter, 25) + fmt.Sprint(n) }

// draw makes an experiment. The incarnations are those that its puts give.
func draw(t *rapid.T) run {
	uids := []string{name("u", 0), name("u", 1), name("u", 2)}
	atOnce := []string{"put", "edit", "revoke", "enrol", "enrol"}
	operation := func(n int, kinds ...string) op {
		o := op{kind: rapid.SampledFrom(kinds).Draw(t, "kind"), root: name("r", n)}
		switch o.kind {
		case "put":
			o.uid = name("u", n)
		case "enrol":
			o.uid = rapid.SampledFrom(uids).Draw(t, "uid")
		case "edit":
			o.revision = rapid.Uint64Range(1, 3).Draw(t, "revision")
		}
		return o
	}
	r := run{before: []op{{kind: "put", uid: uids[0]}}}
	for n := range rapid.IntRange(0, 5).Draw(t, "before") {
		r.before = append(r.before, operation(n+1, append(atOnce, "retire", "retire")...))
	}
	for n := range rapid.IntRange(2, 4).Draw(t, "at once") {
		r.atOnce = append(r.atOnce, operation(n+1+len(r.before), atOnce...))
	}
	r.schedule = rapid.SliceOfN(rapid.IntRange(0, 5), 0, 60).Draw(t, "schedule")
	r.fates = rapid.SliceOfN(rapid.SampledFrom(append([]fate{answered, answered}, survived...)), 0, 8).Draw(t, "fates")
	return r
}

// TestWritersInterleaved puts several writers on one principal, in any order of
// their single reads and writes, with any fate of these.
func TestWritersInterleaved(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if err := draw(rt).experiment(t); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestNoChildOutlivesItsParent grants and edits a machine while its parent is
// revoked, call by call in any order: once all have answered, none may be live.
func TestNoChildOutlivesItsParent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		schedule := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 80).Draw(rt, "schedule")
		fates := rapid.SliceOfN(rapid.SampledFrom(append([]fate{answered, answered}, survived...)), 0, 6).Draw(rt, "fates")
		if err := orphan(t, schedule, fates); err != nil {
			rt.Fatal(err)
		}
	})
}

func orphan(t *testing.T, schedule []int, fates []fate) (complaint error) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, backend: memory.New(), clock: someTime}
		w.put("p", "")
		w.put("m", "p")
		calls := []func(*ledger.Writer) error{
			func(writer *ledger.Writer) error {
				_, err := writer.RevokeGrant(t.Context(), messages.RevokeGrant{Principal: principal("p"), By: "x"})
				return err
			},
			func(writer *ledger.Writer) error {
				_, err := writer.PutGrant(t.Context(), put("n", "m"))
				return err
			},
			func(writer *ledger.Writer) error {
				_, err := writer.EditGrant(t.Context(), messages.EditGrant{Principal: principal("m"), Revision: 1, By: "x"})
				return err
			},
		}
		gate := &turnstile{backend: &flaky{Backend: w.backend, plan: script(fates...)}}
		told := letThrough(gate, schedule, len(calls), func(i int) error {
			return calls[i](ledger.NewWriter(ledger.NewStore(entrance{gate, i}, steady), ledger.Options{Instance: "i", Now: fixedClock}))
		})
		if told[0] != nil {
			complaint = told[0]
			return
		}
		for _, actor := range []string{"p", "m", "n"} {
			if grant := w.authority(actor).Grant; grant.State == messages.GrantLive {
				complaint = fmt.Errorf("%s is live, told %v", actor, told)
			}
		}
		complaint = errors.Join(complaint, ledger.CheckInvariants(t.Context(), w.backend))
	})
	return complaint
}
