package space

import (
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cotal-ai/authplane/actors/callout"
	"github.com/cotal-ai/authplane/actors/exchange"
	"github.com/cotal-ai/authplane/actors/hosting"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/operations"
	"github.com/cotal-ai/authplane/actors/plane"
	"github.com/cotal-ai/authplane/actors/presence"
	"github.com/cotal-ai/authplane/actors/provisioning"
	"github.com/cotal-ai/authplane/actors/readiness"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Names of the space's children.
const (
	respondersPath = "callout"
	presencePath   = "presence"
	exchangePath   = "exchange"
	operationsPath = operations.Name
	readinessPath  = readiness.Name
)

// root is the whole space: what opens, in this order, and the stages in which it
// closes. Admission stops first; the responders stay connected until the plane,
// which their last answers need, has closed.
func (h *Handle) root() supervisor.Spec {
	return supervisor.Spec{Name: h.config.Space, Group: &supervisor.Group{
		Children: append([]supervisor.Spec{
			plane.Spec(h.planeConfig()),
			{Name: respondersPath, Restart: supervisor.Escalate, Group: &supervisor.Group{
				Children: h.responders(),
				Stages:   []supervisor.Stage{{Name: "responders", Drain: h.responderNames(), Close: h.responderNames()}},
			}},
			presence.Spec(h.presenceConfig()),
			exchange.Spec(h.exchangeConfig()),
			operations.Spec(),
			readiness.Spec(),
			h.provisioning.Spec(),
		}, h.observers()...),
		Stages: []supervisor.Stage{
			{Name: "admission", Drain: []string{respondersPath, exchangePath}, Close: append([]string{exchangePath, operationsPath, readinessPath, provisioning.Name}, h.observerNames()...), Share: 2},
			{Name: "plane", Close: []string{plane.Path}},
			{Name: "responders", Close: []string{respondersPath, presencePath}},
		},
	}}
}

func (h *Handle) planeConfig() plane.Config {
	return plane.Config{
		Dialer:       h.parts.dialer,
		Stream:       stream.Config{Space: h.config.Space, Replicas: h.config.Replicas, Instance: h.parts.instance},
		Account:      h.parts.material.Account,
		CalloutUsers: h.parts.calloutUsers(), Presence: presencePath,
		Installation: h.parts.installation, Records: h.parts.records,
		Registered: &h.parts.registered, Run: &h.parts.run, View: &h.parts.view,
		Machine: h.parts.machine, NoStandby: h.config.NoStandby, ServersLost: h.config.ServersLost,
		Outlives: h.outlives(),
		Signer:   h.parts.keyring, BearerLifetime: h.config.BearerLifetime, Controllers: h.controllers(), Platform: h.parts.platform,
		Unreadable: &h.parts.unreadable, Troubles: &h.parts.troubles,
		Gates: &h.parts.gates, Lanes: h.parts.lanes,
	}
}

func (h *Handle) operationsConfig() operations.Config {
	config := h.planeConfig()
	return operations.Config{
		Dialer: config.Dialer, Stream: config.Stream, Remembered: config.Installation.Remembered, Lanes: config.Lanes,
		Closing: h.closing,
	}
}

func (h *Handle) hostingConfig(calls *operations.Calls) hosting.Config {
	return hosting.Config{
		Calls: calls, Observer: plane.Observer, Evictor: plane.Evictor, Presence: presencePath, Writer: plane.Writer,
		CalloutUsers: h.parts.calloutUsers(), Outlives: h.outlives(),
	}
}

// outlives is how long connections live where nobody can drop them; 0 where they can be
// dropped.
func (h *Handle) outlives() time.Duration {
	if h.config.Eviction == EvictionExpiry {
		return h.config.BearerLifetime
	}
	return 0
}

func (h *Handle) responders() []supervisor.Spec {
	config := callout.Config{
		Dialer: h.parts.dialer, Opener: h.parts.opener, Verifier: h.parts.keyring,
		Judge: h.parts.judge, Answerer: h.parts.answerer, Denials: h.parts.denials,
		Metrics: h.metrics.connects, Reader: plane.Reader,
	}
	if h.outlives() > 0 {
		config.Plain = &callout.Once{}
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

func (h *Handle) presenceConfig() presence.Config {
	evictor := plane.Evictor
	if h.outlives() > 0 {
		evictor = ""
	}
	return presence.Config{
		Dialer: h.parts.dialer, Space: h.config.Space, Instance: h.parts.instance,
		Connections: h.kickable, Expected: h.parts.view.Awaited, Evictor: evictor, Responders: h.responderPaths(),
	}
}

func (h *Handle) responderPaths() []string {
	paths := h.responderNames()
	for i, name := range paths {
		paths[i] = respondersPath + "/" + name
	}
	return paths
}

// kickable lists the connections that others shall drop when this process stands
// still: its responders', which would swallow their share of the connects, and its
// scanners', which would keep the claim.
func (h *Handle) kickable() []messages.ConnectionRef {
	tree := h.tree.Load()
	if tree == nil {
		return nil
	}
	var refs []messages.ConnectionRef
	for _, r := range tree.Custody().Resources() {
		conn, ok := r.(*broker.Conn)
		if !ok || !conn.Kickable() {
			continue
		}
		if tuple, named := conn.Tuple(); named {
			refs = append(refs, messages.ConnectionRef{ServerID: tuple.ServerID, ClientID: tuple.ClientID})
		}
	}
	return refs
}

func (h *Handle) exchangeConfig() exchange.Config {
	config := exchange.Config{
		Space: h.config.Space, Reader: plane.Reader, Writer: plane.Writer, Desk: plane.Desk, Observer: plane.Observer,
		Keys: h.parts.keyring, Provider: h.parts.provider, OwnerSecret: h.parts.material.OwnerSecret,
		Control: h, Instances: h, Controllers: h, Runs: h, ControllerRuns: h, Capability: h.parts.capability, Address: h.parts.loopback, Public: h.parts.public,
		Enrolments:     enrolments{h},
		BearerLifetime: h.config.BearerLifetime, Outlives: h.outlives(),
		FaultInjection: h.config.FaultInjection,
		Metrics:        h.metrics.faces, MetricsPage: promhttp.HandlerFor(h.metrics.registry, promhttp.HandlerOpts{}),
	}
	if h.config.Provider != nil {
		config.Issuer = h.config.Provider.Issuer
	}
	return config
}
