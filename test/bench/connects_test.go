package bench

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// atOnce is how many connect at the same time where they take turns.
const atOnce = 64

// calm keeps the client's own patience out of a rate.
var calm = nats.Timeout(10 * time.Second)

// measureConnects compares connects through the callout with such that need none.
func measureConnects(t testing.TB, turns, n int) *Report {
	s := openStage(t)
	people := s.loggedIn("user", atOnce)
	through := func(i int) (*nats.Conn, error) { return s.connect(people[i%len(people)], calm) }
	past := func(int) (*nats.Conn, error) { return s.connectReady(calm) }
	s.connects(n/4+1, past) // warm
	s.connects(n/4+1, through)
	var a, b connectTurns
	for range turns {
		a.add(s.connects(n, past))
		b.add(s.connects(n, through))
	}

	r := &Report{
		Title: "connects through the callout",
		How: fmt.Sprintf("%d at once, %d people, %d connects a turn; head and grant are read on every one. The other side has a ready-made user JWT.",
			atOnce, len(people), n),
	}
	r.Ratio("rate, as a part of the ready-made one", b.rate.Over(a.rate), Bound{AtLeast: 0.45})
	r.Figure("ready-made user JWT", a.rate, "/s", Bound{})
	r.Figure("through the callout", b.rate, "/s", Bound{})
	r.Figure("broker's processor, ready-made", a.broker, "µs/connect", Bound{})
	r.Figure("broker's processor, through the callout", b.broker, "µs/connect", Bound{})
	r.Figure("service and reads, beyond the client's part", b.ours.Minus(a.ours), "µs/connect", Bound{})
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

// connects makes n, and ends each as soon as it stands.
func (s *stage) connects(n int, connect func(i int) (*nats.Conn, error)) connectTurns {
	s.Helper()
	took := make([]time.Duration, n)
	before, began := s.cost(), time.Now()
	must(s, each(n, atOnce, func(i int) error {
		began := time.Now()
		nc, err := connect(i)
		if err != nil {
			return err
		}
		took[i] = time.Since(began)
		nc.Close()
		return nil
	}))
	rate := float64(n) / time.Since(began).Seconds()
	ours, broker := s.cost().since(before, n)
	return connectTurns{rate: One(rate), p50: One(Milliseconds(took).Median()), ours: One(ours), broker: One(broker)}
}

// decisionTimes reports the service's own view: the time from when a worker took a
// request until its answer was handed to the connection.
func (s *stage) decisionTimes(r *Report) {
	s.Helper()
	families, err := s.metrics.Gather()
	must(s, err)
	for _, f := range families {
		if f.GetName() != "authplane_connect_decision_seconds" {
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
		r.Figure("decision, p50 not above", One(at(0.5)), "ms", Bound{})
		r.Figure("decision, p99 not above", One(at(0.99)), "ms", Bound{AtMost: 25})
	}
}
