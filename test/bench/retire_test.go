package bench

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// ending is what the service says of an operation that is over.
type ending struct {
	Outcome      string
	Began, Ended time.Time
	Evicted      int
	Servers      []string
	Error        any
}

// end asks for an operation and waits until it is over.
func (s *stage) end(path string, p person) (e ending, err error) {
	status, err := s.call(s.http, "POST", path, map[string]string{"owner": p.Owner, "actor": p.Actor}, &e)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s: %d %+v", path, status, e)
	}
	return e, err
}

// measureRetire retires one person after the other who has so many connections, for
// several numbers of them.
func measureRetire(t testing.TB, turns int, connections ...int) *Report {
	s := openStage(t)
	crowd := s.clients()
	r := &Report{
		Title: "from asking for a retirement to the proof that he is gone",
		How: fmt.Sprintf("POST /v1/retire and its answer, on one server; %d people each. Begun is when his gate is shut for good, "+
			"proved when the record says that it is done: both by the service's clock, in whole milliseconds.", turns),
	}
	s.awaitPlane()
	var one, most float64
	for _, n := range connections {
		var answered, begun, proved []time.Duration
		for _, p := range s.loggedIn(fmt.Sprintf("user-%d", n), turns) {
			var in, out outcome
			crowd.order(order{Who: []identity{s.identity(p)}, N: n, AtOnce: atOnce, Stay: true}, patience, &in)
			if len(in.Failures) > 0 {
				t.Fatalf("connects failed: %v", in.Failures)
			}
			asked := time.Now()
			e, err := s.end("/v1/retire", p)
			took := time.Since(asked)
			must(t, err)
			crowd.order(order{Part: true}, patience, &out)
			if e.Outcome != "retired" || e.Evicted != n || len(e.Servers) != 1 || out.Left > 0 {
				t.Fatalf("of %d connections %d are left: %+v", n, out.Left, e)
			}
			answered = append(answered, took)
			begun = append(begun, e.Began.Sub(asked))
			proved = append(proved, e.Ended.Sub(e.Began))
		}
		took := Milliseconds(answered)
		if one == 0 {
			one = took.Median()
		}
		most = took.Median() / one
		bound := Bound{}
		if n == 5 {
			bound.AtMost = 1000
		}
		what := fmt.Sprintf("%d connections: ", n)
		r.Figure(what+"proved, p50", One(took.Percentile(50)), "ms", bound)
		r.Figure(what+"proved, p90", One(took.Percentile(90)), "ms", bound)
		r.Figure(what+"proved, longest", One(took.Max()), "ms", bound)
		r.Figure(what+"asked until begun, p50", One(Milliseconds(begun).Median()), "ms", Bound{})
		r.Figure(what+"begun until recorded as done, p50", One(Milliseconds(proved).Median()), "ms", Bound{})
	}
	r.Ratio(fmt.Sprintf("time for %d connections, of that for %d", connections[len(connections)-1], connections[0]), One(most), Bound{})
	return r
}

// measureOperations has many people taken over and retired, so many at once.
func measureOperations(t testing.TB, n int) *Report {
	s := openStage(t)
	s.awaitPlane()
	people := s.loggedIn("user", n)
	r := &Report{
		Title: "takeovers and retirements of many",
		How:   fmt.Sprintf("%d people without a connection, %d asked for at once, each awaited; one after the other is beside it.", n, atOnce),
	}
	few := max(1, n/16)
	for _, kind := range []struct{ what, path string }{{"takeovers", "/v1/takeover"}, {"retirements", "/v1/retire"}} {
		alone, took := s.endAll(kind.path, people[:few], 1)
		r.Figure(kind.what+", one after the other: rate", One(float64(few)/took.Seconds()), "/s", Bound{})
		r.Figure(kind.what+", one after the other: p50", One(alone.Median()), "ms", Bound{})
		many := people
		if kind.path == "/v1/retire" {
			many = people[few:]
		}
		crowd, together := s.endAll(kind.path, many, atOnce)
		rate := float64(len(many)) / together.Seconds()
		r.Figure(kind.what+", many at once: rate", One(rate), "/s", Bound{})
		r.Figure(kind.what+", many at once: p50", One(crowd.Percentile(50)), "ms", Bound{})
		r.Figure(kind.what+", many at once: p99", One(crowd.Percentile(99)), "ms", Bound{})
		r.Ratio(kind.what+", rate of many at once, of one after the other", One(rate*took.Seconds()/float64(few)), Bound{})
	}
	r.Figure("making a small file durable on this disk", syncs(t), "ms", Bound{})
	return r
}

// endAll ends everybody, so many at once, and returns how long each took and all.
func (s *stage) endAll(path string, people []person, atOnce int) (times Series, all time.Duration) {
	s.Helper()
	took := make([]time.Duration, len(people))
	began := time.Now()
	must(s, each(len(people), atOnce, func(i int) error {
		from := time.Now()
		_, err := s.end(path, people[i])
		took[i] = time.Since(from)
		return err
	}))
	return Milliseconds(took), time.Since(began)
}

// awaitPlane waits until the service holds the plane, so that it is not measured how
// long a new one takes to.
func (s *stage) awaitPlane() {
	s.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !s.space.Status().Plane.HeldByUs; {
		select {
		case <-tick.C:
		case <-late:
			s.Fatal("the plane is not held")
		}
	}
}
