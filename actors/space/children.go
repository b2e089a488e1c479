package space

import (
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cotal-ai/authplane/actors/callout"
	"github.com/cotal-ai/authplane/actors/exchange"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/plane"
	"github.com/cotal-ai/authplane/supervisor"
)

// Names of the space's children.
const (
	respondersPath = "callout"
	exchangePath   = "exchange"
)

// root is the whole space: what opens, in this order, and the stages in which it
// closes. Admission stops first; the responders stay connected until the plane,
// which their last answers need, has closed.
func (h *Handle) root() supervisor.Spec {
	return supervisor.Spec{Name: h.config.Space, Group: &supervisor.Group{
		Children: []supervisor.Spec{
			plane.Spec(h.planeConfig()),
			{Name: respondersPath, Restart: supervisor.Escalate, Group: &supervisor.Group{
				Children: h.responders(),
				Stages:   []supervisor.Stage{{Name: "responders", Close: h.responderNames()}},
			}},
			exchange.Spec(h.exchangeConfig()),
		},
		Stages: []supervisor.Stage{
			{Name: "admission", Drain: []string{respondersPath, exchangePath}, Close: []string{exchangePath}, Share: 2},
			{Name: "plane", Close: []string{plane.Path}},
			{Name: "responders", Close: []string{respondersPath}},
		},
	}}
}

func (h *Handle) planeConfig() plane.Config {
	return plane.Config{
		Dialer:       h.parts.dialer,
		Stream:       stream.Config{Space: h.config.Space, Replicas: h.config.Replicas, Instance: h.parts.instance},
		Installation: h.parts.installation,
	}
}

func (h *Handle) responders() []supervisor.Spec {
	config := callout.Config{
		Dialer: h.parts.dialer, Opener: h.parts.opener, Verifier: h.parts.keyring,
		Judge: h.parts.judge, Answerer: h.parts.answerer, Denials: h.parts.denials,
		Metrics: h.metrics.connects, Reader: plane.Reader,
	}
	specs := make([]supervisor.Spec, 0, h.config.Responders)
	for i := range h.config.Responders {
		specs = append(specs, callout.Spec(i+1, config))
	}
	return specs
}

func (h *Handle) responderNames() []string {
	names := make([]string, 0, h.config.Responders)
	for _, spec := range h.responders() {
		names = append(names, spec.Name)
	}
	return names
}

func (h *Handle) exchangeConfig() exchange.Config {
	config := exchange.Config{
		Space: h.config.Space, Reader: plane.Reader, Writer: plane.Writer,
		Keys: h.parts.keyring, Provider: h.parts.provider, OwnerSecret: h.parts.material.OwnerSecret,
		Control: h, Capability: h.parts.capability, Address: h.parts.loopback, Public: h.parts.public,
		FaultInjection: h.config.FaultInjection,
		Metrics:        h.metrics.faces, MetricsPage: promhttp.HandlerFor(h.metrics.registry, promhttp.HandlerOpts{}),
	}
	if h.config.Provider != nil {
		config.Issuer = h.config.Provider.Issuer
	}
	return config
}
