package space

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cotal-ai/authplane/actors/callout"
	"github.com/cotal-ai/authplane/actors/internal/face"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// metrics are the collectors of one space. They live as long as the space, since a
// registry takes a name only once, and lives come and go.
type metrics struct {
	registry *prometheus.Registry
	outer    prometheus.Registerer // nil when nobody else collects
	connects *callout.Metrics
	faces    *face.Metrics
}

func newMetrics(outer prometheus.Registerer, h *Handle) (*metrics, error) {
	m := &metrics{registry: prometheus.NewRegistry(), outer: outer}
	labelled := prometheus.WrapRegistererWith(prometheus.Labels{"space": h.config.Space}, m.registry)
	var problems []error
	var err error
	if m.connects, err = callout.NewMetrics(labelled); err != nil {
		problems = append(problems, err)
	}
	if m.faces, err = face.NewMetrics(labelled); err != nil {
		problems = append(problems, err)
	}
	problems = append(problems, labelled.Register(treeCollector{h}))
	if outer != nil {
		problems = append(problems, outer.Register(m.registry))
	}
	return m, errors.Join(problems...)
}

func (m *metrics) unregister() {
	if m.outer != nil {
		m.outer.Unregister(m.registry)
	}
}

// treeCollector reads the tree when it is asked. Its paths are those of the
// composition, never a client's choice.
type treeCollector struct{ h *Handle }

var (
	readyDesc = prometheus.NewDesc("authplane_ready",
		"Whether the space can serve: 1 or 0.", nil, nil)
	restartsDesc = prometheus.NewDesc("authplane_actor_restarts_total",
		"Restarts of an actor.", []string{"path"}, nil)
	openDesc = prometheus.NewDesc("authplane_connections_open",
		"Connections of the service that have not ended.", nil, nil)
	unreadableDesc = prometheus.NewDesc("authplane_rows_unreadable",
		"Rows of the authority stream that could not be read when they were last asked for.", nil, nil)
)

// Describe lists what Collect yields.
func (c treeCollector) Describe(out chan<- *prometheus.Desc) {
	out <- readyDesc
	out <- restartsDesc
	out <- openDesc
	out <- unreadableDesc
}

// Collect yields the tree's state now; nothing before the tree stands.
func (c treeCollector) Collect(out chan<- prometheus.Metric) {
	tree := c.h.tree.Load()
	if tree == nil {
		return
	}
	ready := 0.0
	if c.h.Status().State == messages.SpaceReady {
		ready = 1
	}
	out <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, ready)
	out <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(len(tree.Custody().Open())))
	out <- prometheus.MustNewConstMetric(unreadableDesc, prometheus.GaugeValue, float64(c.h.parts.unreadable.Count()))
	for _, n := range tree.Snapshot() {
		out <- restarts(n)
	}
}

func restarts(n supervisor.Node) prometheus.Metric {
	return prometheus.MustNewConstMetric(restartsDesc, prometheus.CounterValue, float64(n.Restarts), n.Path)
}
