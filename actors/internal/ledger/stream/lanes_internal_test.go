package stream

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

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
)

// slowWire shows what is sent and lands it when it is let go.
type slowWire struct {
	rows  *memory.Backend
	lanes int
	letGo chan error // nil lands it; an error is the answer instead

	mu   sync.Mutex
	sent []string // the keys of each batch, in the order they were sent
}

func newSlowWire(lanes int) *slowWire {
	return &slowWire{rows: memory.New(), lanes: lanes, letGo: make(chan error)}
}

func (w *slowWire) width() int { return w.lanes }

func (w *slowWire) publishBatch(ctx context.Context, writes []ledger.Write) (uint64, error) {
	var keys []string
	for _, write := range writes {
		keys = append(keys, write.Key)
	}
	w.mu.Lock()
	w.sent = append(w.sent, strings.Join(keys, " "))
	w.mu.Unlock()
	select {
	case answer := <-w.letGo:
		if answer != nil {
			return 0, answer
		}
	case <-ctx.Done():
		return 0, ledger.ErrUnknown
	}
	return w.rows.Send(ctx, ledger.Batch{Writes: writes})
}

func (w *slowWire) sentOf(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.sent, want) {
		t.Fatalf("sent %q, want %q", w.sent, want)
	}
}

// rows creates keys.
func rows(keys ...string) (writes []ledger.Write) {
	for _, key := range keys {
		writes = append(writes, ledger.Create(key, []byte(key)))
	}
	return writes
}

type told struct {
	last uint64
	err  error
}

// handIn sends from a goroutine of its own, and returns when it stands in line.
func handIn(l *Lanes, ctx context.Context, by wire, writes []ledger.Write) <-chan told {
	answer := make(chan told, 1)
	go func() {
		last, err := l.send(ctx, by, writes)
		answer <- told{last, err}
	}()
	synctest.Wait()
	return answer
}

func (a told) check(t *testing.T, what string, last uint64, err error) {
	t.Helper()
	if a.last != last || !errors.Is(a.err, err) {
		t.Errorf("%s was told %d, %v; want %d, %v", what, a.last, a.err, last, err)
	}
}

func TestALoneBatchGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := NewLanes(1), newSlowWire(1)
		began := time.Now()
		a := handIn(l, t.Context(), w, rows("a", "b"))
		w.sentOf(t, "a b")
		w.letGo <- nil
		(<-a).check(t, "it", 2, nil)
		if took := time.Since(began); took != 0 {
			t.Errorf("it waited for %s", took)
		}
	})
}

func TestWhoWaitsTravelsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := NewLanes(2), newSlowWire(1)
		first := handIn(l, t.Context(), w, rows("a", "b"))
		second, third := handIn(l, t.Context(), w, rows("c", "d", "e")), handIn(l, t.Context(), w, rows("f", "g"))
		w.sentOf(t, "a b")
		w.letGo <- nil
		(<-first).check(t, "the first", 2, nil)
		w.sentOf(t, "a b", "c d e f g")
		w.letGo <- nil
		// Each is told the revision of his own last row.
		(<-second).check(t, "the second", 5, nil)
		(<-third).check(t, "the third", 7, nil)
	})
}

func TestLanesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := NewLanes(2), newSlowWire(12)
		for i := range 3 {
			handIn(l, t.Context(), w, rows(fmt.Sprint("a", i), fmt.Sprint("b", i)))
		}
		w.sentOf(t, "a0 b0", "a1 b1")
		for range 3 {
			w.letGo <- nil
		}
		w.sentOf(t, "a0 b0", "a1 b1", "a2 b2")
	})
}

// TestSameKeysGoOneAfterAnother also while the first of them is under way in another
// lane, and without letting a later one pass.
func TestSameKeysGoOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := NewLanes(2), newSlowWire(2)
		handIn(l, t.Context(), w, rows("k", "a"))
		second := handIn(l, t.Context(), w, rows("k", "b"))
		handIn(l, t.Context(), w, rows("b", "c")) // must not pass the second, and so not the first
		w.sentOf(t, "k a")
		handIn(l, t.Context(), w, rows("d", "e")) // is in nobody's way
		w.sentOf(t, "k a", "d e")
		w.letGo <- nil
		w.letGo <- nil
		w.sentOf(t, "k a", "d e", "k b")
		w.letGo <- nil
		(<-second).check(t, "who came second to a key", 0, ledger.ErrLost)
		w.sentOf(t, "k a", "d e", "k b", "b c")
		w.letGo <- nil
	})
}

func TestAFencedBatchTravelsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := NewLanes(1), newSlowWire(1)
		handIn(l, t.Context(), w, rows("a", "b"))
		handIn(l, t.Context(), w, rows("c", "d"))
		fence := ledger.Fenced("owed", nil, ledger.Pin{Key: "plane"})
		handIn(l, t.Context(), w, append(rows("e"), fence))
		handIn(l, t.Context(), w, rows("f", "g"))
		w.letGo <- nil
		w.sentOf(t, "a b", "c d f g")
		w.letGo <- nil
		w.sentOf(t, "a b", "c d f g", "e owed")
		w.letGo <- nil
	})
}

func TestConnectionsAreNotMixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, old, next := NewLanes(1), newSlowWire(1), newSlowWire(1)
		handIn(l, t.Context(), old, rows("a", "b"))
		handIn(l, t.Context(), old, rows("c", "d"))
		handIn(l, t.Context(), next, rows("e", "f"))
		handIn(l, t.Context(), old, rows("g", "h"))
		old.letGo <- nil
		old.sentOf(t, "a b", "c d g h")
		old.letGo <- nil
		next.sentOf(t, "e f")
		next.letGo <- nil
	})
}

func TestAGroupHasNoMoreRowsThanABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := NewLanes(1), newSlowWire(1)
		many := func(name string) (keys []string) {
			for i := range 400 {
				keys = append(keys, fmt.Sprint(name, i))
			}
			return keys
		}
		handIn(l, t.Context(), w, rows("a", "b"))
		for _, name := range []string{"c", "d", "e", "f", "g"} {
			handIn(l, t.Context(), w, rows(many(name)...))
		}
		for range 4 {
			w.letGo <- nil
		}
		synctest.Wait()
		var sizes []int
		for _, sent := range w.sent {
			sizes = append(sizes, len(strings.Fields(sent)))
		}
		if want := []int{2, 800, 800, 400}; !slices.Equal(sizes, want) {
			t.Errorf("sent %v rows, want %v", sizes, want)
		}
	})
}

// TestOneBadBatchSpoilsNoOther puts it at every place of a group.
func TestOneBadBatchSpoilsNoOther(t *testing.T) {
	const members = 7
	for bad := range members {
		synctest.Test(t, func(t *testing.T) {
			l, w := NewLanes(1), newSlowWire(1)
			handIn(l, t.Context(), w, rows("first", "second"))
			var answers []<-chan told
			for i := range members {
				writes := rows(fmt.Sprint("a", i), fmt.Sprint("b", i))
				if i == bad {
					writes[1].Pin.Revision = 77
				}
				answers = append(answers, handIn(l, t.Context(), w, writes))
			}
			go func() {
				for {
					select {
					case w.letGo <- nil:
					case <-t.Context().Done():
						return
					}
				}
			}()
			for i, answer := range answers {
				a := <-answer
				row, found, _ := w.rows.Get(t.Context(), fmt.Sprint("b", i))
				if i == bad {
					if found || !errors.Is(a.err, ledger.ErrLost) {
						t.Errorf("the bad one landed: %v, %v", found, a.err)
					}
				} else if a.err != nil || !found || row.Revision != a.last {
					t.Errorf("batch %d beside bad %d: told %v, stands at %d: %v", i, bad, a, row.Revision, found)
				}
			}
		})
	}
}

func TestWhoGivesUpDisturbsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := NewLanes(1), newSlowWire(1)
		handIn(l, t.Context(), w, rows("a", "b"))
		leading, endLeading := context.WithCancel(t.Context())
		following, endFollowing := context.WithCancel(t.Context())
		waiting, endWaiting := context.WithCancel(t.Context())
		leads := handIn(l, leading, w, rows("c", "d"))
		follows := handIn(l, following, w, rows("e", "f"))
		waits := handIn(l, waiting, w, rows("x", "y"))
		stays := handIn(l, t.Context(), w, rows("g", "h"))
		endWaiting()
		(<-waits).check(t, "who gave up before", 0, ledger.ErrNotApplied)
		w.letGo <- nil
		w.sentOf(t, "a b", "c d e f g h")
		endFollowing()
		(<-follows).check(t, "who gave up meanwhile", 0, ledger.ErrUnknown)
		endLeading()
		synctest.Wait()
		w.letGo <- nil
		(<-stays).check(t, "who stayed", 8, nil)
		(<-leads).check(t, "who led", 4, nil)
	})
}

func TestAGroupIsGivenUpWithItsLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := NewLanes(1), newSlowWire(1)
		first := handIn(l, t.Context(), w, rows("a", "b"))
		ctx, end := context.WithCancel(t.Context())
		leads, follows := handIn(l, ctx, w, rows("c", "d")), handIn(l, ctx, w, rows("e", "f"))
		w.letGo <- nil
		<-first
		end()
		(<-leads).check(t, "who led", 0, ledger.ErrUnknown)
		(<-follows).check(t, "who followed", 0, ledger.ErrUnknown)
		after := handIn(l, t.Context(), w, rows("g", "h"))
		w.letGo <- nil
		(<-after).check(t, "who came after", 4, nil)
	})
}
