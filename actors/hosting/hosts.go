package hosting

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/operations"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Config is what a registration needs of its space.
type Config struct {
	Calls *operations.Calls
	// Paths of the actors that are asked whether somebody is connected.
	Observer, Evictor, Presence, Writer string
	// CalloutUsers are the public keys of the users that may answer connects.
	CalloutUsers []string
	// Outlives is the longest life of a connection where the servers cannot be asked who
	// is connected; 0 where they can be.
	Outlives time.Duration
}

// Hosts registers the instances of one space, over all lives of the calls.
type Hosts struct {
	config Config
	seen   seen
}

// New takes what registrations need.
func New(config Config) *Hosts { return &Hosts{config: config} }

// Calls are those that registrations are.
func (h *Hosts) Calls() *operations.Calls { return h.config.Calls }

// Register makes the caller the one process of an instance. Besides the refusals of
// messages.RegisterInstance it fails as operations.Perform does.
func (h *Hosts) Register(ctx context.Context, tree *supervisor.Tree, ask messages.RegisterInstance) (messages.InstanceRegistered, error) {
	return h.perform(ctx, tree, "registration", broker.HostRegistration(ask.Endpoint, ask.Instance), ask.Endpoint, ask.Instance, ask,
		func(ctx context.Context, r *ledger.Registrar, _ ledger.Gone) (messages.InstanceRegistered, error) {
			return r.Register(ctx, ask)
		})
}

// Repair opens a gate that a registration left frozen. Besides the refusals of
// messages.ReconcileInstance it fails as operations.Perform does.
func (h *Hosts) Repair(ctx context.Context, tree *supervisor.Tree, ask messages.ReconcileInstance) (messages.InstanceRegistered, error) {
	return h.perform(ctx, tree, "repair", broker.Maintenance(ask.Endpoint, ask.Instance), ask.Endpoint, ask.Instance, ask,
		func(ctx context.Context, r *ledger.Registrar, gone ledger.Gone) (messages.InstanceRegistered, error) {
			return r.Reconcile(ctx, ask, gone)
		})
}

// Evict drops the connections of some in DATA and proves that they have none, for a job
// of its caller's; see evict.Run. Nobody is kept from coming back. It is refused with
// messages.SystemAbsent where nobody can be dropped.
func (h *Hosts) Evict(ctx context.Context, at operations.Site, store *ledger.Store, targets []messages.Target) (evict.Outcome, error) {
	if h.config.Outlives > 0 {
		return evict.Outcome{}, messages.SystemAbsent
	}
	w := &work{hosts: h, at: at}
	return w.sweep(ctx, store, evict.Ask{Operation: names.NewUID(), Callouts: h.config.CalloutUsers, Targets: targets})
}

func (h *Hosts) perform(ctx context.Context, tree *supervisor.Tree, kind string, role broker.Role, endpoint, instance string, ask any,
	do func(context.Context, *ledger.Registrar, ledger.Gone) (messages.InstanceRegistered, error)) (messages.InstanceRegistered, error) {
	calls := h.config.Calls
	return operations.Perform[messages.InstanceRegistered](ctx, calls, tree, operations.Job{
		Kind: kind, On: instance + " at " + endpoint,
		Role:  role,
		Prove: calls.Proved(instance),
		Ask:   ask,
		Do: func(ctx context.Context, at operations.Site) (any, error) {
			store, w := calls.Store(at, instance), &work{hosts: h, at: at, endpoint: endpoint, instance: instance}
			return do(ctx, ledger.NewRegistrar(store, w.evict(store), nil).Over(at.Conn.User()).Hosting(), w.gone(store))
		},
	})
}
