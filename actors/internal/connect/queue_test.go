package connect_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/messages"
)

// hand is a clock that moves when it is told to.
type hand struct {
	mu sync.Mutex
	at time.Time
}

func (h *hand) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hand) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.at.Add(d)
}

type shedItem struct {
	item int
	why  messages.Error
}

// A queue, beside the plainest thing that keeps the same promises.
type queueModel struct {
	q        *connect.Queue[int]
	clock    *hand
	shed     []shedItem
	waiting  []shedItem // unused why; kept in order of arrival
	arrived  map[int]time.Time
	expected []shedItem
	put      int
	closed   bool
}

const (
	modelCapacity = 5
	modelBudget   = 1200 * time.Millisecond
	modelNeed     = 50 * time.Millisecond
	modelLate     = 300 * time.Millisecond
)

func newQueueModel() *queueModel {
	m := &queueModel{clock: &hand{at: now}, arrived: map[int]time.Time{}}
	m.q = connect.NewQueue(connect.QueueConfig[int]{Capacity: modelCapacity, Budget: modelBudget, Need: modelNeed, LateAfter: modelLate,
		Now: m.clock.now, Shed: func(item int, why messages.Error) { m.shed = append(m.shed, shedItem{item, why}) }})
	return m
}

// expire removes from the model what has less than it needs.
func (m *queueModel) expire() {
	m.waiting = slices.DeleteFunc(m.waiting, func(w shedItem) bool {
		late := m.clock.now().Sub(m.arrived[w.item]) > modelBudget-modelNeed
		if late {
			m.expected = append(m.expected, shedItem{w.item, messages.TooLate})
		}
		return late
	})
}

func (m *queueModel) putOne() {
	m.put++
	if m.closed {
		m.expected = append(m.expected, shedItem{m.put, messages.ServiceClosing})
	} else {
		m.expire()
		if len(m.waiting) == modelCapacity {
			m.expected = append(m.expected, shedItem{m.waiting[0].item, messages.Busy})
			m.waiting = m.waiting[1:]
		}
		m.arrived[m.put] = m.clock.now()
		m.waiting = append(m.waiting, shedItem{item: m.put})
	}
	m.q.Put(m.put)
}

func (m *queueModel) takeOne(t *rapid.T) {
	m.expire()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errNothing) // so that an empty queue says so at once
	item, deadline, err := m.q.Take(ctx)
	switch {
	case len(m.waiting) > 0:
		i := 0
		if m.clock.now().Sub(m.arrived[m.waiting[0].item]) >= modelLate {
			i = len(m.waiting) - 1
		}
		want := m.waiting[i].item
		m.waiting = slices.Delete(m.waiting, i, i+1)
		if err != nil || item != want || !deadline.Equal(m.arrived[want].Add(modelBudget)) {
			t.Fatalf("took %d until %v, %v, want %d", item, deadline, err, want)
		}
		if left := deadline.Sub(m.clock.now()); left < modelNeed {
			t.Fatalf("handed out with %v left", left)
		}
	case m.closed && !errors.Is(err, messages.ServiceClosing):
		t.Fatalf("closed and empty: took %d, %v", item, err)
	case !m.closed && !errors.Is(err, errNothing):
		t.Fatalf("empty: took %d, %v", item, err)
	}
}

var errNothing = errors.New("nothing to take")

func TestQueueAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newQueueModel()
		rt.Repeat(map[string]func(*rapid.T){
			"put":   func(*rapid.T) { m.putOne() },
			"put 3": func(*rapid.T) { m.putOne(); m.putOne(); m.putOne() },
			"take":  m.takeOne,
			"wait": func(t *rapid.T) {
				m.clock.move(time.Duration(rapid.SampledFrom([]int{1, 100, 299, 300, 700, 1150, 1151}).Draw(t, "ms")) * time.Millisecond)
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
					m.q.Close()
					m.closed = true
				}
			},
			"": func(t *rapid.T) {
				if !slices.Equal(m.shed, m.expected) {
					t.Fatalf("shed %v, want %v", m.shed, m.expected)
				}
				if got := m.q.Len(); got != len(m.waiting) {
					t.Fatalf("%d wait, want %d", got, len(m.waiting))
				}
			},
		})
	})
}

// Everything put is handed out once or shed once, whoever takes and puts at the
// same time, and a taker that waits is woken.
func TestQueueHandsOutOnce(t *testing.T) {
	const putters, takers, each = 8, 8, 2000
	var mu sync.Mutex
	seen := map[int]int{}
	note := func(item int) {
		mu.Lock()
		defer mu.Unlock()
		seen[item]++
	}
	q := connect.NewQueue(connect.QueueConfig[int]{Capacity: 64, Shed: func(item int, _ messages.Error) { note(item) }})
	var putting, taking sync.WaitGroup
	for range takers {
		taking.Go(func() {
			for {
				item, _, err := q.Take(context.Background())
				if err != nil {
					return
				}
				note(item)
			}
		})
	}
	for p := range putters {
		putting.Go(func() {
			for i := range each {
				q.Put(p*each + i)
			}
		})
	}
	putting.Wait()
	q.Close()
	taking.Wait()
	if len(seen) != putters*each {
		t.Errorf("%d of %d items were seen", len(seen), putters*each)
	}
	for item, times := range seen {
		if times != 1 {
			t.Fatalf("item %d was seen %d times", item, times)
		}
	}
}

func TestTakeWaits(t *testing.T) {
	q := connect.NewQueue(connect.QueueConfig[int]{})
	taken := make(chan int, 3) // one for each taker
	var takers sync.WaitGroup
	for range 3 {
		takers.Go(func() {
			if item, _, err := q.Take(context.Background()); err == nil {
				taken <- item
			}
		})
	}
	for i := range 3 {
		q.Put(i)
	}
	takers.Wait()
	close(taken)
	var got []int
	for item := range taken {
		got = append(got, item)
	}
	slices.Sort(got)
	if !slices.Equal(got, []int{0, 1, 2}) {
		t.Fatalf("three takers got %v", got)
	}
}

func TestTakeEndsWithItsContext(t *testing.T) {
	q := connect.NewQueue(connect.QueueConfig[int]{})
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, _, err := q.Take(ctx)
		ended <- err
	}()
	cancel(errNothing)
	if err := <-ended; !errors.Is(err, errNothing) {
		t.Fatalf("got %v", err)
	}
}

func TestCloseWakesEveryTaker(t *testing.T) {
	q := connect.NewQueue(connect.QueueConfig[int]{})
	var takers sync.WaitGroup
	for range 4 {
		takers.Go(func() {
			if _, _, err := q.Take(context.Background()); !errors.Is(err, messages.ServiceClosing) {
				t.Errorf("got %v", err)
			}
		})
	}
	q.Close()
	q.Close()
	takers.Wait()
}

// Twice as much comes as can be worked on, for ten seconds. What is worked on is
// worked on in time, all the time, and nearly all of it is fresh.
func TestQueueUnderOverload(t *testing.T) {
	clock := &hand{at: now}
	shed := 0
	q := connect.NewQueue(connect.QueueConfig[time.Time]{Now: clock.now, Shed: func(time.Time, messages.Error) { shed++ }})
	served, fresh := 0, 0
	for range 10_000 { // a millisecond each
		q.Put(clock.now())
		q.Put(clock.now())
		arrived, _, err := q.Take(context.Background())
		must(t, err)
		clock.move(time.Millisecond)
		if age := clock.now().Sub(arrived); age > connect.DecisionBudget {
			t.Fatalf("an item was worked on at %v", age)
		} else if age <= 310*time.Millisecond {
			fresh++
		}
		served++
	}
	if fresh < served*9/10 {
		t.Errorf("%d of %d were answered while fresh", fresh, served)
	}
	if shed+q.Len()+served != 20_000 {
		t.Errorf("%d shed, %d waiting, %d served of 20,000", shed, q.Len(), served)
	}
}
