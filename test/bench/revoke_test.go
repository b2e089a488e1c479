package bench

import (
	"strings"
	"testing"
	"time"
)

// measureRevoke revokes n people and has each try to come in as soon as that is
// acknowledged.
func measureRevoke(t testing.TB, n int) *Report {
	s := openStage(t)
	people := s.loggedIn("user", n)
	var connects, revokes, refusals []time.Duration
	late := 0 // connects let in after the acknowledgement
	for _, p := range people {
		began := time.Now()
		nc, err := s.connect(p, calm)
		must(t, err)
		connects = append(connects, time.Since(began))
		nc.Close()

		began = time.Now()
		must(t, s.revoke(p))
		acknowledged := time.Now()
		revokes = append(revokes, acknowledged.Sub(began))
		for {
			nc, err := s.connect(p, calm)
			if err == nil {
				late++
				nc.Close()
				continue
			}
			if !strings.Contains(strings.ToLower(err.Error()), "authorization violation") {
				t.Fatalf("neither in nor refused: %v", err)
			}
			refusals = append(refusals, time.Since(acknowledged))
			break
		}
	}

	connected, refused := Milliseconds(connects), Milliseconds(refusals)
	r := &Report{
		Title: "from an acknowledged revocation to the first refused connect",
		How:   "The connect begins when the revocation is acknowledged; a plain connect of the same person just before is beside it.",
	}
	r.Ratio("p50, of that of a plain connect", One(refused.Median()/connected.Median()), Bound{})
	r.Ratio("refused, of all connects begun after it", One(float64(n)/float64(n+late)), Bound{AtLeast: 1})
	r.Figure("revoke until refused, p50", One(refused.Percentile(50)), "ms", Bound{})
	r.Figure("revoke until refused, p99", One(refused.Percentile(99)), "ms", Bound{})
	r.Figure("revoke until refused, longest", One(refused.Max()), "ms", Bound{AtMost: 1000})
	r.Figure("revoke until acknowledged, p50", One(Milliseconds(revokes).Median()), "ms", Bound{})
	r.Figure("plain connect, p50", One(connected.Median()), "ms", Bound{})
	return r
}
