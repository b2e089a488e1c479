package bench

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// measureExchanges has n people exchange for the first time in the same moment,
// which makes their incarnations, and then again, which only reads.
func measureExchanges(t testing.TB, n int) *Report {
	s := openStage(t)
	people := s.people("user", n)
	first := s.exchange(people)
	again := s.exchange(people)

	r := &Report{
		Title: fmt.Sprintf("%d first exchanges at once", n),
		How: "Each makes an incarnation: one atomic batch of three rows, which the broker makes durable in several steps. " +
			"The same people's second exchange writes nothing.",
	}
	r.Ratio("got their bearer, of all", One(float64(first.statuses[http.StatusOK])/float64(n)), Bound{AtLeast: 1})
	r.Ratio("rate, as a part of the second exchange's", One(first.rate(n)/again.rate(n)), Bound{})
	first.describe(r, "first exchange", n)
	again.describe(r, "second exchange", n)
	r.Figure("making a small file durable on this disk", syncs(t), "ms", Bound{})
	return r
}

// crowd is how one crowd fared.
type crowd struct {
	took         time.Duration
	statuses     map[int]int
	times        []time.Duration
	ours, broker float64
}

func (c *crowd) rate(n int) float64 { return float64(n) / c.took.Seconds() }

func (c *crowd) describe(r *Report, what string, n int) {
	times := Milliseconds(c.times)
	r.Figure(what+": until all are answered", One(c.took.Seconds()), "s", Bound{})
	r.Figure(what+": rate", One(c.rate(n)), "/s", Bound{})
	r.Figure(what+": p50", One(times.Percentile(50)), "ms", Bound{})
	r.Figure(what+": p99", One(times.Percentile(99)), "ms", Bound{})
	r.Figure(what+": processor, service and clients", One(c.ours), "µs/exchange", Bound{})
	r.Figure(what+": processor, broker", One(c.broker), "µs/exchange", Bound{})
	r.Note("%s: %v", what, c.statuses)
}

// exchange has everybody come at once, each over a connection of their own.
func (s *stage) exchange(people []person) *crowd {
	s.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	c := &crowd{statuses: map[int]int{}}
	var mu sync.Mutex
	before, began := s.cost(), time.Now()
	together(len(people), func(i int) {
		from := time.Now()
		status, err := s.logIn(client, &people[i])
		took := time.Since(from)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			status = 0 // no answer
		}
		c.statuses[status]++
		c.times = append(c.times, took)
	})
	c.took = time.Since(began)
	c.ours, c.broker = s.cost().since(before, len(people))
	return c
}

// syncs is how long this disk takes to make a small file durable: what an atomic
// batch on one replica waits for, several times.
func syncs(t testing.TB) Series {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	var took []time.Duration
	for range 15 {
		f, err := os.Create(path)
		must(t, err)
		_, err = f.Write(make([]byte, 512))
		must(t, err)
		began := time.Now()
		must(t, f.Sync())
		took = append(took, time.Since(began))
		must(t, f.Close())
	}
	return Milliseconds(took)
}
