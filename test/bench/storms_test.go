package bench

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// bucket is the width of one column of a storm.
	bucket = 250 * time.Millisecond
	// window is over how many buckets goodput is taken, so that the chance of one
	// bucket does not decide.
	window = 4
	// retryAfter and retryJitter are how a client of default configuration tries again.
	retryAfter, retryJitter = 2 * time.Second, 2 * time.Second
	// stormPatience is how long a storm may take.
	stormPatience = 90 * time.Second
)

// measureStorm has n clients come at once, each trying until it is in, first with
// ready-made JWTs and then through the callout.
func measureStorm(t testing.TB, n int) *Report {
	s := openStage(t)
	people := s.loggedIn("user", min(n, 256))
	past := s.storm(n, func(int) (*nats.Conn, error) { return s.connectReady() })
	through := s.storm(n, func(i int) (*nats.Conn, error) { return s.connect(people[i%len(people)]) })

	r := &Report{
		Title: fmt.Sprintf("storm of %d clients at once", n),
		How: fmt.Sprintf("Default clients (2 s to connect), again after %s and up to %s more; %d people.",
			retryAfter, retryJitter, len(people)),
	}
	r.Ratio("time until all are in, of that with ready-made JWTs", One(through.took.Seconds()/past.took.Seconds()), Bound{})
	if worst, columns := through.worst(); columns > 0 {
		r.Ratio(fmt.Sprintf("least goodput of a second, of the best (%d measured)", columns), One(worst), Bound{AtLeast: 0.6})
	} else {
		r.Note("all were in before a goodput could sink")
	}
	through.describe(r, "through the callout")
	past.describe(r, "ready-made")
	return r
}

// storm is how one went.
type storm struct {
	n        int
	began    time.Time
	took     time.Duration
	mu       sync.Mutex
	admitted []time.Duration
	// tried are the spans in which somebody was being connected.
	tried     []span
	failures  map[string]int
	firstTime int // how many got in at once
	left      int // how many never did
}

type span struct{ from, to time.Duration }

func (s *stage) storm(n int, connect func(i int) (*nats.Conn, error)) *storm {
	s.Helper()
	st := &storm{n: n, failures: map[string]int{}, began: time.Now()}
	conns := make([]*nats.Conn, n)
	together(n, func(i int) { conns[i] = st.come(func() (*nats.Conn, error) { return connect(i) }) })
	var closing sync.WaitGroup
	for _, nc := range conns {
		if nc != nil {
			closing.Go(nc.Close)
		}
	}
	closing.Wait()
	return st
}

// come tries until it is in.
func (st *storm) come(connect func() (*nats.Conn, error)) *nats.Conn {
	for try := 0; ; try++ {
		from := time.Since(st.began)
		nc, err := connect()
		to := time.Since(st.began)
		if st.note(span{from, to}, err, try) {
			return nc
		}
		if to > stormPatience {
			st.mu.Lock()
			defer st.mu.Unlock()
			st.left++
			return nil
		}
		time.Sleep(retryAfter + rand.N(retryJitter)) // the client's own pause is what is measured
	}
}

func (st *storm) note(s span, err error, try int) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.tried = append(st.tried, s)
	if err != nil {
		st.failures[kindOf(err)]++
		return false
	}
	st.admitted = append(st.admitted, s.to)
	st.took = max(st.took, s.to)
	if try == 0 {
		st.firstTime++
	}
	return true
}

// columns counts the admissions by bucket.
func (st *storm) columns() []int {
	counts := make([]int, int(st.took/bucket)+1)
	for _, at := range st.admitted {
		counts[at/bucket]++
	}
	return counts
}

// worst is the least goodput of a window, as a part of the best. Only windows count
// during all of which clients were waiting to be let in; the last of the storm,
// where they are too few to keep anybody busy, does not.
func (st *storm) worst() (ratio float64, windows int) {
	counts, busy := st.columns(), st.busy()
	least, best := math.Inf(1), 0.0
	for i := 0; i+window <= len(counts); i++ {
		sum, waited := 0, true
		for j := i; j < i+window; j++ {
			sum += counts[j]
			waited = waited && busy[j]
		}
		best = max(best, float64(sum))
		if waited {
			least = min(least, float64(sum))
			windows++
		}
	}
	if windows == 0 {
		return 0, 0
	}
	return least / best, windows
}

// busy tells for each bucket whether, at each end of it, at least as many were
// waiting to be let in as may do so at once elsewhere.
func (st *storm) busy() []bool {
	counts := st.columns()
	waiting := make([]int, len(counts)+1)
	for _, s := range st.tried {
		for edge := int(s.from/bucket) + 1; edge < len(waiting) && time.Duration(edge)*bucket < s.to; edge++ {
			waiting[edge]++
		}
	}
	waiting[0] = st.n
	busy := make([]bool, len(counts))
	for i := range busy {
		busy[i] = min(waiting[i], waiting[i+1]) >= min(atOnce, st.n/2)
	}
	return busy
}

func (st *storm) describe(r *Report, side string) {
	r.Figure(side+": until all are in", One(st.took.Seconds()), "s", Bound{})
	r.Figure(side+": in at the first try", One(float64(st.firstTime)), fmt.Sprintf("of %d", st.n), Bound{})
	var columns []string
	busy := st.busy()
	for i, c := range st.columns() {
		text := fmt.Sprint(c)
		if !busy[i] {
			text = "(" + text + ")"
		}
		columns = append(columns, text)
	}
	r.Note("%s, admitted each %s (in brackets: hardly anybody waited): %s", side, bucket, strings.Join(columns, " "))
	if len(st.failures) > 0 {
		r.Note("%s, failed tries: %v", side, st.failures)
	}
	if st.left > 0 {
		r.Note("%s: %d NEVER GOT IN", side, st.left)
	}
}

// kindOf drops what differs between equal errors.
func kindOf(err error) string {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() || errors.Is(err, nats.ErrTimeout) {
		return "timeout"
	}
	return err.Error()
}
