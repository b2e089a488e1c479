package space

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/hosting"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/operations"
	"github.com/cotal-ai/authplane/actors/provisioning"
	"github.com/cotal-ai/authplane/actors/runs"
	"github.com/cotal-ai/authplane/supervisor"
)

// Start opens a space on an actor system of the caller's, whose configuration is
// not touched. It returns when everything is open, or with an error that says which
// part failed and why, everything opened before being unwound. While no server
// answers it keeps trying until ctx ends; ctx has no say after that.
//
// Bad configuration is messages.Malformed, unusable keys messages.KeysUnusable, a
// state directory in use messages.StateDirTaken, and an authority stream that is
// not ours StreamForeign or StreamDrifted; in all of these nothing was written
// outside the state directory.
func Start(ctx context.Context, system *actor.ActorSystem, config Config) (*Handle, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configure space %s: %w", config.Space, err)
	}
	config = config.withDefaults()
	state, err := openStateDir(config.StateDir)
	if err != nil {
		return nil, fmt.Errorf("start space %s: %w", config.Space, err)
	}
	h, err := open(ctx, system, config, state)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start space %s: %w", config.Space, err), state.release())
	}
	return h, nil
}

func (c Config) withDefaults() Config {
	c.Listen = cmp.Or(c.Listen, defaultListen)
	c.Replicas = cmp.Or(c.Replicas, defaultReplicas)
	c.Responders = cmp.Or(c.Responders, defaultResponders)
	c.Eviction = cmp.Or(c.Eviction, EvictionSweep)
	c.BearerLifetime = cmp.Or(c.BearerLifetime, identity.MaxBearerLife)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = c.Logger.With("space", c.Space)
	return c
}

func open(ctx context.Context, system *actor.ActorSystem, config Config, state *stateDir) (_ *Handle, err error) {
	h := &Handle{config: config, closing: make(chan struct{}), closed: make(chan struct{})}
	if h.parts, err = gather(ctx, config, state); err != nil {
		return nil, err
	}
	if h.metrics, err = newMetrics(config.Metrics, h); err != nil {
		return nil, err
	}
	if err := state.write(capabilityFile, []byte(h.parts.capability.Reveal())); err != nil {
		return nil, err
	}
	calls := operations.New(h.operationsConfig())
	h.hosts = hosting.New(h.hostingConfig(calls))
	if h.runs, err = runs.New(h.runsConfig(calls)); err != nil {
		h.metrics.unregister()
		return nil, err
	}
	h.provisioning = provisioning.New(h.provisioningConfig(calls))
	tree, err := supervisor.Start(ctx, system, h.root(), h.options()...)
	if err != nil {
		h.metrics.unregister()
		return nil, err
	}
	h.tree.Store(tree)
	if err := state.writeJSON(ServiceFile, h.Service()); err != nil {
		err = errors.Join(err, h.abandon(tree))
		return nil, err
	}
	h.door = system.Root.SpawnPrefix(actor.PropsFromProducer(func() actor.Actor { return &door{h} }), "space-"+config.Space+"-")
	go h.finish(system, tree) // ends with the tree; Closed is how its end is seen
	return h, nil
}

func (h *Handle) options() []supervisor.Option {
	options := []supervisor.Option{supervisor.WithLogger(h.config.Logger)}
	if h.config.Middleware != nil {
		options = append(options, supervisor.WithMiddleware(h.config.Middleware))
	}
	return options
}

// abandon closes a tree that opened, when the start fails all the same.
func (h *Handle) abandon(tree *supervisor.Tree) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	err := tree.Close(ctx)
	h.metrics.unregister()
	return err
}

// finish gives back what the space holds of the process, once it has really ended.
func (h *Handle) finish(system *actor.ActorSystem, tree *supervisor.Tree) {
	<-tree.Closed()
	system.Root.Stop(h.door)
	h.metrics.unregister()
	if err := h.parts.state.release(); err != nil {
		h.config.Logger.Warn("the state directory was not given back", "error", err)
	}
	close(h.closed)
}

// Service says how a running space is reached. It stands in service.json of the
// state directory while the space runs; nothing in it is secret.
type Service struct {
	Space   string `json:"space"`
	NATSURL string `json:"nats_url"`
	// URL is the loopback face.
	URL string `json:"url"`
	// PublicURL is the other face; empty while it is shut.
	PublicURL      string `json:"public_url"`
	CapabilityFile string `json:"capability_file"`
	SentinelCreds  string `json:"sentinel_creds"`
	// ProviderIssuer is empty where only machines log in.
	ProviderIssuer string `json:"idp_issuer"`
	StateDir       string `json:"state_dir"`
	PID            int    `json:"pid"`
}

// Service says how this space is reached.
func (h *Handle) Service() Service {
	s := Service{
		Space: h.config.Space, NATSURL: h.config.NATSURL, URL: h.URL(), PublicURL: h.PublicURL(),
		CapabilityFile: h.CapabilityFile(), SentinelCreds: h.config.SentinelCreds,
		StateDir: h.parts.state.path, PID: os.Getpid(),
	}
	if h.config.Provider != nil {
		s.ProviderIssuer = h.config.Provider.Issuer
	}
	return s
}
