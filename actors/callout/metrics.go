package callout

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cotal-ai/authplane/messages"
)

// Metrics counts how connects ended. Its labels come from closed sets. A nil
// Metrics counts nothing.
type Metrics struct {
	outcomes *prometheus.CounterVec
	// All are of admitted connects: a decision, its wait for the reader, and the rest.
	decision, reading, working prometheus.Histogram
}

// NewMetrics registers the collectors of one space's responders.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authplane_connects_total",
			Help: "Connect requests by how they ended.",
		}, []string{"kind", "reason"}),
		decision: histogram("decision", "Time from the beginning of a decision to its answer, for admitted connects."),
		reading:  histogram("reading", "What of a decision was spent waiting for what the authority holds, for admitted connects."),
		working:  histogram("working", "What of a decision was not, for admitted connects."),
	}
	for _, c := range []prometheus.Collector{m.outcomes, m.decision, m.reading, m.working} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func histogram(what, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "authplane_connect_" + what + "_seconds",
		Help:    help,
		Buckets: []float64{.0005, .001, .0025, .005, .01, .015, .025, .05, .1, .25, .5, 1},
	})
}

// admitted counts a decision that took so long, reading included.
func (m *Metrics) admitted(took, reading time.Duration) {
	if m == nil {
		return
	}
	m.outcomes.WithLabelValues("admitted", "").Inc()
	m.decision.Observe(took.Seconds())
	m.reading.Observe(reading.Seconds())
	m.working.Observe((took - reading).Seconds())
}

func (m *Metrics) refused(kind messages.DecisionKind, reason string) {
	if m == nil {
		return
	}
	m.outcomes.WithLabelValues(string(kind), reason).Inc()
}
