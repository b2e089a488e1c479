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
	seconds  prometheus.Histogram
}

// NewMetrics registers the collectors of one space's responders.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authplane_connects_total",
			Help: "Connect requests by how they ended.",
		}, []string{"kind", "reason"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "authplane_connect_decision_seconds",
			Help:    "Time from the beginning of a decision to its answer, for admitted connects.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
		}),
	}
	for _, c := range []prometheus.Collector{m.outcomes, m.seconds} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) admitted(took time.Duration) {
	if m == nil {
		return
	}
	m.outcomes.WithLabelValues("admitted", "").Inc()
	m.seconds.Observe(took.Seconds())
}

func (m *Metrics) refused(kind messages.DecisionKind, reason string) {
	if m == nil {
		return
	}
	m.outcomes.WithLabelValues(string(kind), reason).Inc()
}
