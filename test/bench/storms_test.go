package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// bucket is the width of one column of a storm.
	bucket = 250 * time.Millisecond
	// window is over how many buckets goodput is taken, so that the chance of one
	// bucket does not decide.
	window = 4
)

// measureStorm has n clients come at once, each trying until it is in, first with
// ready-made JWTs and then through the callout.
func measureStorm(t testing.TB, n int) *Report {
	s := openStage(t)
	through := order{N: n, Storm: true}
	for _, p := range s.loggedIn("user", min(n, 256)) {
		through.Who = append(through.Who, s.identity(p))
	}
	clients := s.clients()
	ready := s.storm(clients, order{N: n, Storm: true, Who: []identity{s.readyMade()}})
	asked := s.storm(clients, through)

	r := &Report{
		Title: fmt.Sprintf("storm of %d clients at once", n),
		How: fmt.Sprintf("Default clients (2 s to connect), again after %s and up to %s more; %d people.",
			retryAfter, retryJitter, len(through.Who)),
	}
	everybody := Bound{}
	if n <= 1000 {
		everybody.AtLeast = 1 // at the first try
	}
	r.Ratio("in at the first try, of all", One(float64(asked.firstTime)/float64(n)), everybody)
	r.Ratio("in at last, of all", One(float64(len(asked.admitted))/float64(n)), Bound{AtLeast: 1})
	r.Ratio("time until all are in, of that with ready-made JWTs", One(asked.took.Seconds()/ready.took.Seconds()), Bound{})
	if worst, windows := asked.worst(); windows > 0 {
		r.Ratio(fmt.Sprintf("least goodput of a second, of the best (%d measured)", windows), One(worst), Bound{AtLeast: 0.6})
	} else {
		r.Note("all were in before a goodput could sink")
	}
	asked.describe(r, "through the callout")
	ready.describe(r, "ready-made")
	r.Note("requests, by how the service ended them: %s", s.outcomes())
	return r
}

// storm is how one went.
type storm struct {
	outcome
	n         int
	took      time.Duration // until the last one was in
	admitted  []time.Duration
	firstTime int // how many got in at their first try
}

func (s *stage) storm(clients *child, o order) *storm {
	s.Helper()
	st := &storm{n: o.N}
	clients.order(o, stormPatience+patience, &st.outcome)
	for _, t := range st.Tries {
		if !t.In {
			continue
		}
		st.admitted = append(st.admitted, t.To)
		st.took = max(st.took, t.To)
		if !t.Again {
			st.firstTime++
		}
	}
	return st
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
// during all of which clients were waiting to be let in, from when the first come
// in: until then every connection is still shaking hands, also without a callout.
func (st *storm) worst() (ratio float64, windows int) {
	counts, busy := st.columns(), st.busy()
	least, best := math.Inf(1), 0.0
	begun := slices.IndexFunc(counts, func(c int) bool { return c >= slices.Max(counts)/10 })
	for i := begun; i+window <= len(counts); i++ {
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
	for _, t := range st.Tries {
		for edge := int(t.From/bucket) + 1; edge < len(waiting) && time.Duration(edge)*bucket < t.To; edge++ {
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
	if len(st.Failures) > 0 {
		r.Note("%s, failed tries: %v", side, st.Failures)
	}
	if st.Left > 0 {
		r.Note("%s: %d NEVER GOT IN", side, st.Left)
	}
}

// outcomes is what the service counts.
func (s *stage) outcomes() string {
	s.Helper()
	families, err := s.metrics.Gather()
	must(s, err)
	var found []string
	for _, f := range families {
		if f.GetName() != "authplane_connects_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			words := []string{}
			for _, l := range m.GetLabel() {
				if l.GetName() != "space" && l.GetValue() != "" {
					words = append(words, l.GetValue())
				}
			}
			found = append(found, fmt.Sprintf("%s %.0f", strings.Join(words, " "), m.GetCounter().GetValue()))
		}
	}
	return strings.Join(found, ", ")
}
