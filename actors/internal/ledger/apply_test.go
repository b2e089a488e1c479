package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

// brisk is patience for tests without a broker.
var brisk = ledger.Patience{First: time.Microsecond, Most: time.Millisecond, Budget: 10 * time.Second}

func one(key, value string) ledger.Batch {
	return ledger.Batch{Writes: []ledger.Write{ledger.Create(key, []byte(value))}, Witness: key}
}

// script answers attempt by attempt, then truly.
func script(fates ...fate) func(int) fate {
	return func(n int) fate {
		if n < len(fates) {
			return fates[n]
		}
		return answered
	}
}

func TestApplyEndsDefinite(t *testing.T) {
	for name, fates := range map[string][]fate{
		"answered":                      {},
		"request lost":                  {lostBefore},
		"answer lost":                   {lostAfter},
		"answer lost, then load":        {lostAfter, refusedForNow, contended},
		"answer lost again and again":   {lostBefore, lostBefore, lostAfter, lostAfter, lostAfter},
		"load":                          {refusedForNow, refusedForNow},
		"contention while pins hold":    {contended, contended, contended},
		"called lost while pins hold":   {answeredByOldLeader, answeredByOldLeader},
		"answer lost, then called lost": {lostAfter, answeredByOldLeader},
		"request lost, then called lost": {lostBefore, answeredByOldLeader,
			answeredByOldLeader},
	} {
		t.Run(name, func(t *testing.T) {
			backend := memory.New()
			store := ledger.NewStore(&flaky{Backend: backend, plan: script(fates...)}, brisk)
			batch := ledger.Batch{Witness: "b", Writes: []ledger.Write{
				ledger.Create("a", []byte("1")), ledger.Create("b", []byte("2")), ledger.Create("c", []byte("3"))}}
			last, err := store.Apply(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			if row, _, _ := backend.Get(t.Context(), "c"); row.Revision != last || last != 3 {
				t.Fatalf("the last row is at %d, told was %d", row.Revision, last)
			}
		})
	}
}

func TestApplyLoses(t *testing.T) {
	for name, fates := range map[string][]fate{
		"answered": {}, "request lost": {lostBefore}, "contended": {contended}, "load": {refusedForNow},
	} {
		t.Run(name, func(t *testing.T) {
			backend := memory.New()
			if _, err := backend.Send(t.Context(), one("k", "theirs")); err != nil {
				t.Fatal(err)
			}
			batch := ledger.Batch{Witness: "mine", Writes: []ledger.Write{
				ledger.Create("mine", []byte("x")), ledger.Create("k", []byte("ours"))}}
			_, err := ledger.NewStore(&flaky{Backend: backend, plan: script(fates...)}, brisk).Apply(t.Context(), batch)
			if !errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrOvertaken) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// TestApplyOvertaken writes over the row between the lost answer and the repetition:
// nobody can tell any more from the row whose it was before.
func TestApplyOvertaken(t *testing.T) {
	backend := memory.New()
	over := &flaky{Backend: backend, plan: script(lostAfter)}
	hook := &hooked{Backend: over, after: func(n int) {
		if n == 1 {
			row, _, _ := backend.Get(t.Context(), "k")
			_, _ = backend.Send(t.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, []byte("theirs"))}})
		}
	}}
	_, err := ledger.NewStore(hook, brisk).Apply(t.Context(), one("k", "ours"))
	if !errors.Is(err, ledger.ErrOvertaken) || !errors.Is(err, ledger.ErrLost) {
		t.Fatalf("got %v", err)
	}
}

// hooked calls after each attempt.
type hooked struct {
	ledger.Backend
	sends int
	after func(n int)
}

func (h *hooked) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	last, err := h.Backend.Send(ctx, b)
	h.sends++
	h.after(h.sends)
	return last, err
}

func TestApplyGivesUpHonestly(t *testing.T) {
	always := func(f fate) func(int) fate { return func(int) fate { return f } }
	short := ledger.Patience{First: time.Microsecond, Most: time.Millisecond, Budget: 20 * time.Millisecond}
	for f, want := range map[fate]error{lostBefore: messages.OutcomeUnknown, lostAfter: messages.OutcomeUnknown,
		refusedForNow: messages.Contended, contended: messages.Contended, answeredByOldLeader: messages.Contended} {
		t.Run(fmt.Sprint(f), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			// The witness is never seen, so that even what landed stays in doubt.
			backend := &flaky{Backend: blind{memory.New()}, plan: always(f)}
			_, err := ledger.NewStore(backend, short).Apply(ctx, one("k", "v"))
			if !errors.Is(err, want) {
				t.Fatalf("got %v, want %v", err, want)
			}
			if errors.Is(err, ledger.ErrLost) {
				t.Fatal("what nobody knows is called lost")
			}
			if spent := ctx.Err() != nil; spent != errors.Is(want, messages.OutcomeUnknown) {
				t.Fatalf("context spent: %v", spent)
			}
		})
	}
}

// blind is a backend that cannot be read.
type blind struct{ ledger.Backend }

func (blind) Get(context.Context, string) (ledger.Row, bool, error) {
	return ledger.Row{}, false, messages.BrokerAway
}

func TestApplyInDoubtWhenTheProcessCannotGoOn(t *testing.T) {
	backend := &flaky{Backend: memory.New(), plan: script(lostAfter, diesBefore)}
	_, err := ledger.NewStore(backend, brisk).Apply(t.Context(), one("k", "v"))
	if !errors.Is(err, messages.OutcomeUnknown) {
		t.Fatalf("got %v", err)
	}
	backend = &flaky{Backend: memory.New(), plan: script(diesBefore)}
	if _, err = ledger.NewStore(backend, brisk).Apply(t.Context(), one("k", "v")); !errors.Is(err, errDead) || errors.Is(err, messages.OutcomeUnknown) {
		t.Fatalf("without doubt: %v", err)
	}
}

// TestTheWitnessIsHeardUnderProof lets one read see the batch and the next come
// from a leader that lags.
func TestTheWitnessIsHeardUnderProof(t *testing.T) {
	backend := &halfBlind{Backend: &flaky{Backend: memory.New(), plan: script(lostAfter)}}
	_, err := ledger.NewStore(backend, brisk).Apply(t.Context(), ledger.Batch{Witness: "w", Writes: []ledger.Write{
		ledger.Create("a", []byte("1")), ledger.Create("w", []byte("2"))}})
	if err != nil {
		t.Fatalf("it landed, and is called %v", err)
	}
}

// halfBlind does not see the row w until its leader is proved.
type halfBlind struct {
	ledger.Backend
	synced bool
}

func (h *halfBlind) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	if key == "w" && !h.synced {
		return ledger.Row{}, false, nil
	}
	return h.Backend.Get(ctx, key)
}

func (h *halfBlind) Sync(context.Context) error {
	h.synced = true
	return nil
}
