package bench

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// atOnce is how many connect at the same time where they take turns.
const atOnce = 64

// measureConnects compares connects through the callout with such that need none.
func measureConnects(t testing.TB, turns, n int) *Report {
	s := openStage(t)
	through := order{N: n, AtOnce: atOnce}
	for _, p := range s.loggedIn("user", atOnce) {
		through.Who = append(through.Who, s.identity(p))
	}
	past := order{N: n, AtOnce: atOnce, Who: []identity{s.readyMade()}}
	clients := s.clients()
	s.turn(clients, past) // warm
	s.turn(clients, through)
	var a, b connectTurns
	for range turns {
		a.add(s.turn(clients, past))
		b.add(s.turn(clients, through))
	}

	r := &Report{
		Title: "connects through the callout",
		How: fmt.Sprintf("%d at once, %d people, %d connects a turn; head and grant are read on every one. The other side has a ready-made user JWT.",
			atOnce, len(through.Who), n),
	}
	r.Ratio("rate, as a part of the ready-made one", b.rate.Over(a.rate), Bound{AtLeast: 0.45})
	r.Figure("ready-made user JWT", a.rate, "/s", Bound{})
	r.Figure("through the callout", b.rate, "/s", Bound{})
	r.Figure("broker's processor, ready-made", a.broker, "µs/connect", Bound{})
	r.Figure("broker's processor, through the callout", b.broker, "µs/connect", Bound{})
	r.Figure("service's processor, with its reads", b.ours, "µs/connect", Bound{})
	r.Figure("client's connect, ready-made, p50", a.p50, "ms", Bound{})
	r.Figure("client's connect, through the callout, p50", b.p50, "ms", Bound{})
	s.decisionTimes(r)
	return r
}

// connectTurns are what some turns took.
type connectTurns struct{ rate, p50, ours, broker Series }

func (c *connectTurns) add(one connectTurns) {
	c.rate, c.p50 = append(c.rate, one.rate...), append(c.p50, one.p50...)
	c.ours, c.broker = append(c.ours, one.ours...), append(c.broker, one.broker...)
}

func (s *stage) turn(clients *child, o order) connectTurns {
	s.Helper()
	var out outcome
	before := s.cost()
	clients.order(o, patience, &out)
	ours, broker := s.cost().since(before, o.N)
	if len(out.Failures) > 0 {
		s.Fatalf("connects failed: %v", out.Failures)
	}
	var took []time.Duration
	for _, t := range out.Tries {
		took = append(took, t.To-t.From)
	}
	rate := float64(o.N) / out.Took.Seconds()
	return connectTurns{rate: One(rate), p50: One(Milliseconds(took).Median()), ours: One(ours), broker: One(broker)}
}

// decisionTimes reports the service's own view: the time from when a worker took a
// request until its answer was handed to the connection, and what of it was not
// waiting for the reader, which waits for the broker. The wait for a core is in both.
func (s *stage) decisionTimes(r *Report) {
	s.Helper()
	families, err := s.metrics.Gather()
	must(s, err)
	for _, f := range families {
		var what string
		var bound Bound
		switch f.GetName() {
		case "authplane_connect_decision_seconds":
			what = "decision and its reads"
		case "authplane_connect_working_seconds":
			what, bound = "decision without its reads", Bound{AtMost: 25}
		default:
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		at := func(part float64) float64 {
			for _, b := range h.GetBucket() {
				if float64(b.GetCumulativeCount()) >= part*float64(h.GetSampleCount()) {
					return b.GetUpperBound() * 1000
				}
			}
			return math.Inf(1)
		}
		r.Figure(what+", p50 not above", One(at(0.5)), "ms", Bound{})
		r.Figure(what+", p99 not above", One(at(0.99)), "ms", bound)
	}
}
