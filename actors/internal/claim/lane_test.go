package claim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

func opName(name string) string { return fmt.Sprintf("%026s", name) }

// step begins the operation of that name.
func step(name string) claim.Step {
	return claim.Step{Begin: []string{opName(name)}, Writes: []ledger.Write{ledger.Create("op."+opName(name), []byte(name))}}
}

func owes(t *testing.T, held *claim.Held, want ...string) {
	t.Helper()
	owed, err := held.Lane().Owed(t.Context())
	for i := range want {
		want[i] = opName(want[i])
	}
	if err != nil || !slices.Equal(owed.Ops, want) {
		t.Errorf("owed are %v, %v; want %v", owed.Ops, err, want)
	}
}

func TestWhatIsBegunIsOwedUntilItIsDone(t *testing.T) {
	s := newSpace(t)
	held := s.acquire(s.process())
	lane := held.Lane()
	owes(t, held)
	for _, name := range []string{"b", "a", "c"} {
		if _, err := lane.Write(t.Context(), step(name)); err != nil {
			t.Fatal(err)
		}
	}
	owes(t, held, "a", "b", "c")
	last, err := lane.Write(t.Context(), claim.Step{Done: []string{opName("b")}, Begin: []string{opName("d")},
		Writes: []ledger.Write{ledger.Create("x", []byte("1")), ledger.Create("y", []byte("2"))}})
	if err != nil {
		t.Fatal(err)
	}
	if y, _, _ := s.backend.Get(t.Context(), "y"); y.Revision != last {
		t.Errorf("told %d, and the last row is at %d", last, y.Revision)
	}
	owes(t, held, "a", "c", "d")
	// Whoever comes next finds it.
	s.died(held)
	successor := s.acquire(s.process())
	owes(t, successor, "a", "c", "d")
	_, err = lane.Write(t.Context(), step("late"))
	s.want("the former holder", err, messages.ClaimLost)
	if _, found, _ := s.backend.Get(t.Context(), "op."+opName("late")); found {
		t.Error("a former holder has written")
	}
	owes(t, successor, "a", "c", "d")
}

func TestManyWritersOfOneHolder(t *testing.T) {
	s := newSpace(t)
	held := s.acquire(s.process())
	var writing sync.WaitGroup
	var want []string
	for i := range 20 {
		name := fmt.Sprintf("%03d", i)
		want = append(want, name)
		writing.Go(func() {
			if _, err := held.Lane().Write(t.Context(), step(name)); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	owes(t, held, want...)
	row, _, _ := s.backend.Get(t.Context(), ledger.OwedKey)
	if owed, err := ledger.DecodeOwed(row); err != nil || len(owed.Ops) != len(want) {
		t.Errorf("the row says %v, %v", owed, err)
	}
}

func TestARowThatMovedCostsNoPlane(t *testing.T) {
	s := newSpace(t)
	held := s.acquire(s.process())
	if _, err := held.Lane().Write(t.Context(), step("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Lane().Write(t.Context(), step("a")); !errors.Is(err, ledger.ErrLost) {
		t.Errorf("a name taken twice: %v", err)
	}
	if held.Reason() != nil {
		t.Errorf("fenced because %v", held.Reason())
	}
	owes(t, held, "a")
}

func TestABatchWithoutAPinOfItsOwnIsRefused(t *testing.T) {
	s := newSpace(t)
	held := s.acquire(s.process())
	for _, writes := range [][]ledger.Write{nil, {ledger.Fenced("x", nil, held.Pin())}} {
		_, err := held.Lane().Write(t.Context(), claim.Step{Writes: writes})
		s.want("write", err, messages.InternalFault)
	}
}

// TestALateBatchDoesNotUndoALaterOne is a caller that gave up, and a batch that
// arrives when others have been written.
func TestALateBatchDoesNotUndoALaterOne(t *testing.T) {
	for _, arrives := range []string{"before the next write", "after it", "never"} {
		t.Run(arrives, func(t *testing.T) {
			s := newSpace(t)
			line := &counted{Backend: s.backend}
			held := s.acquire(s.over(line))
			if _, err := held.Lane().Write(t.Context(), step("a")); err != nil {
				t.Fatal(err)
			}
			ctx, giveUp := context.WithCancel(t.Context())
			var sent ledger.Batch
			first := true
			line.before = func(b ledger.Batch) error {
				if first {
					first, sent = false, b
					giveUp()
					return ledger.ErrUnknown
				}
				return nil
			}
			_, err := held.Lane().Write(ctx, step("b"))
			s.want("the write that was given up", err, messages.OutcomeUnknown)
			if arrives == "before the next write" {
				if _, err := s.backend.Send(t.Context(), sent); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := held.Lane().Write(t.Context(), step("c")); err != nil {
				t.Fatal(err)
			}
			if arrives == "after it" {
				if _, err := s.backend.Send(t.Context(), sent); !errors.Is(err, ledger.ErrLost) {
					t.Errorf("the late batch: %v", err)
				}
			}
			owes(t, held, "a", "b", "c")
			row, _, _ := s.backend.Get(t.Context(), ledger.OwedKey)
			if owed, err := ledger.DecodeOwed(row); err != nil || len(owed.Ops) != 3 {
				t.Errorf("the row says %v, %v", owed, err)
			}
		})
	}
}

func TestWhatIsOwedCannotBeRead(t *testing.T) {
	s := newSpace(t)
	if _, err := s.backend.Send(t.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Create(ledger.OwedKey, []byte("{}"))}}); err != nil {
		t.Fatal(err)
	}
	held := s.acquire(s.process())
	_, err := held.Lane().Write(t.Context(), step("a"))
	s.want("write", err, messages.RowCorrupt)
}
