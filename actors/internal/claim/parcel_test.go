package claim_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// crowded is a holder whose first batch waits on the way, so that what is asked
// meanwhile comes together.
type crowded struct {
	*space
	held    *claim.Held
	line    *counted
	release chan error // one for the first batch
	all     sync.WaitGroup
}

func newCrowd(s *space) *crowded {
	c := &crowded{space: s, line: &counted{Backend: s.backend}, release: make(chan error)}
	c.held = s.acquire(s.over(c.line))
	first := true
	var mu sync.Mutex
	c.line.before = func(ledger.Batch) error {
		mu.Lock()
		waits := first
		first = false
		mu.Unlock()
		if waits {
			return <-c.release
		}
		return nil
	}
	return c
}

// write has a step written, and tells its end.
func (c *crowded) write(ctx context.Context, step claim.Step, end func(revision uint64, err error)) {
	c.all.Go(func() { end(c.held.Lane().Write(ctx, step)) })
	synctest.Wait()
}

// TestACrowdTravelsTogether has many steps come while one is under way: they are one
// batch, each is told its own revision, and one that rests on a row that has moved
// spoils no other.
func TestACrowdTravelsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(newSpace(t))
		landed := func(name string) func(uint64, error) {
			return func(revision uint64, err error) {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				row, _, err := c.backend.Get(t.Context(), "op."+opName(name))
				if err != nil || row.Revision != revision {
					t.Errorf("%s is told %d, and stands at %d, %v", name, revision, row.Revision, err)
				}
			}
		}
		_, before := c.line.count()
		c.write(t.Context(), step("m00"), landed("m00"))
		want := []string{"m00"}
		for i := range 20 {
			name := fmt.Sprintf("n%02d", i)
			want = append(want, name)
			c.write(t.Context(), step(name), landed(name))
		}
		c.release <- nil
		c.all.Wait()
		if _, sends := c.line.count(); sends-before != 2 {
			t.Errorf("%d batches for 21 steps", sends-before)
		}
		owes(t, c.held, want...)
	})
}

func TestWhoLosesInACrowdIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(newSpace(t))
		var lost, landed int
		var mu sync.Mutex
		end := func(_ uint64, err error) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				landed++
			case errors.Is(err, ledger.ErrLost):
				lost++
			default:
				t.Error(err)
			}
		}
		want := []string{"m00"}
		c.write(t.Context(), step("m00"), end)
		for i := range 8 {
			name := fmt.Sprintf("n%02d", i)
			want = append(want, name)
			c.write(t.Context(), step(name), end)
		}
		c.write(t.Context(), step("m00"), end) // it stands by then
		c.write(t.Context(), step("n03"), end) // it travels in the same moment, and must not in the same batch
		c.release <- nil
		c.all.Wait()
		if landed != 9 || lost != 2 {
			t.Errorf("%d landed, %d lost", landed, lost)
		}
		owes(t, c.held, want...)
	})
}

// TestWhoGivesUpSpoilsNobody has one of a crowd give up while he waits, and another
// while all are under way.
func TestWhoGivesUpSpoilsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(newSpace(t))
		refused := func(want error) func(uint64, error) {
			return func(_ uint64, err error) {
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
		}
		c.write(t.Context(), step("0"), refused(nil))
		waits, giveUp := context.WithCancel(t.Context())
		c.write(waits, step("gave-up"), refused(messages.Contended))
		giveUp()
		synctest.Wait()

		second := make(chan struct{}) // closed when the crowd's batch may go
		c.line.before = func(ledger.Batch) error { <-second; return nil }
		under, leave := context.WithCancel(t.Context())
		for i := range 3 {
			c.write(t.Context(), step(fmt.Sprint(i+1)), refused(nil))
		}
		c.write(under, step("9"), refused(messages.OutcomeUnknown))
		c.release <- nil
		synctest.Wait()
		leave()
		synctest.Wait()
		close(second)
		c.all.Wait()
		owes(t, c.held, "0", "1", "2", "3", "9")
	})
}

// TestNothingIsSentBehindADoubt has a crowd parted, and its first half not be answered
// before everybody gives up: the second half is not sent, since it would write over
// what the first may still add to what is owed.
func TestNothingIsSentBehindADoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(newSpace(t))
		end := func(want error) func(uint64, error) {
			return func(_ uint64, err error) {
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
		}
		c.write(t.Context(), step("0"), end(nil))
		under, leave := context.WithCancel(t.Context())
		c.write(under, step("x"), end(messages.OutcomeUnknown))
		c.write(under, step("0"), func(_ uint64, err error) {
			if err == nil {
				t.Error("it landed twice")
			}
		}) // it stands by then, so that they part
		var late ledger.Batch
		c.line.before = func(b ledger.Batch) error {
			if len(b.Writes) == 2 && b.Writes[1].Key == "op."+opName("x") {
				late = b
				return ledger.ErrUnknown
			}
			return nil
		}
		c.release <- nil
		synctest.Wait()
		leave()
		c.all.Wait()
		if late.Writes == nil {
			t.Fatal("they did not part")
		}
		if _, err := c.backend.Send(t.Context(), late); err != nil { // it was only slow
			t.Fatal(err)
		}
		c.line.before = nil
		if _, err := c.held.Lane().Write(t.Context(), step("y")); err != nil {
			t.Fatal(err)
		}
		owes(t, c.held, "0", "x", "y")
	})
}
