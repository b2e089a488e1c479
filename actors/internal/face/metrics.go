package face

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cotal-ai/authplane/messages"
)

// Metrics counts what the faces of one space answer. It outlives a face, since a
// registry takes a name only once; nil counts nothing. No label is chosen by a
// client: routes are patterns, and codes are the catalogue's.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	panics   *prometheus.CounterVec
}

// NewMetrics registers the collectors. It fails when they are there already.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authplane_http_requests_total", Help: "Requests answered, by face, route, status and refusal code.",
		}, []string{"face", "route", "status", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "authplane_http_request_seconds", Help: "Time from a request's arrival to its answer, waiting for its turn included.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2, 10},
		}, []string{"face", "route"}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authplane_http_panics_total", Help: "Panics of request handlers that were contained.",
		}, []string{"face"}),
	}
	for _, collector := range []prometheus.Collector{m.requests, m.seconds, m.panics} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) answered(face, route string, status int, code messages.Code, took time.Duration) {
	if m == nil {
		return
	}
	m.requests.WithLabelValues(face, route, strconv.Itoa(status), string(code)).Inc()
	m.seconds.WithLabelValues(face, route).Observe(took.Seconds())
}

func (m *Metrics) panicked(face string) {
	if m != nil {
		m.panics.WithLabelValues(face).Inc()
	}
}
