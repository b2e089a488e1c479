package space

import (
	"context"
	"errors"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/maintenance"
	"github.com/cotal-ai/authplane/actors/plane"
	"github.com/cotal-ai/authplane/actors/registrar"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

const (
	// readWithin is how long a gate is tried to be read, over the restart of a reader.
	readWithin = 10 * time.Second
	// lookEvery is when an awaited gate is read although nobody nudges: a nudge that was
	// sent while nobody listened is lost.
	lookEvery = 5 * time.Second
	// lookAgain is the same after a read that failed.
	lookAgain = 500 * time.Millisecond
)

// RegisterHostInstance makes the calling process the one process of an instance of a
// service that the embedding program serves. The first has epoch 0 and each later
// start the next one. endpoint is the service's name, of [a-z0-9_-] with `_` for `.`;
// instance is of [a-z0-9], 26 to 32 characters, the same at each start; principal is
// whose connections serve it, and no other may register it.
//
// When it returns, whatever was issued to the former process is revoked, and nobody is
// connected as the principal, or as whoever held something issued: so a process
// registers first and connects then. While somebody is, it is refused with
// InstanceHeld, and the former process finds itself fenced; see AwaitFence. Of two that
// start at once the later one wins, and the other is refused with InstanceSuperseded.
// The other refusals are InstanceForeign, Malformed, and those that pass: ServiceClosing,
// ActorAway, BrokerAway, OutcomeUnknown. Whatever it fails with, calling again goes on
// from there.
func (h *Handle) RegisterHostInstance(ctx context.Context, endpoint, instance string, principal messages.Principal) (messages.InstanceRegistered, error) {
	ask := messages.RegisterInstance{Endpoint: endpoint, Instance: instance, Principal: principal}
	if err := ledger.CheckRegistration(ask); err != nil {
		return messages.InstanceRegistered{}, err
	}
	tree, err := h.open()
	if err != nil {
		return messages.InstanceRegistered{}, err
	}
	if endpoint == registrar.Endpoint {
		return messages.InstanceRegistered{}, messages.InstanceForeign.Because("the instances of %s are this service's own", endpoint)
	}
	return h.hosts.Register(ctx, tree, ask)
}

// RepairInstance opens a gate that a registration which died left frozen, for the
// process that was registered before, and returns it. It fails unless that was done:
// see messages.ReconcileInstance. There is no need for it where the instance is started
// again, since a registration takes a frozen gate over.
func (h *Handle) RepairInstance(ctx context.Context, endpoint, instance string) (messages.InstanceRegistered, error) {
	if err := ledger.CheckInstance(endpoint, instance); err != nil {
		return messages.InstanceRegistered{}, err
	}
	tree, err := h.open()
	if err != nil {
		return messages.InstanceRegistered{}, err
	}
	return maintenance.New(h.hosts).Reconcile(ctx, tree, messages.ReconcileInstance{Endpoint: endpoint, Instance: instance})
}

// open is the tree, unless the space closes, or opens.
func (h *Handle) open() (*supervisor.Tree, error) {
	select {
	case <-h.closing:
		return nil, messages.ServiceClosing
	default:
	}
	tree := h.tree.Load()
	if tree == nil {
		return nil, messages.ActorAway.Because("the space is opening")
	}
	return tree, nil
}

// ObserveGate reads the gate of an instance, as the leader holds it now. It is refused
// with InstanceNotFound for one that never registered, and with Malformed.
func (h *Handle) ObserveGate(ctx context.Context, endpoint, instance string) (messages.Instance, error) {
	if err := ledger.CheckInstance(endpoint, instance); err != nil { // which repeats nothing of it
		return messages.Instance{}, err
	}
	return read[messages.Instance](ctx, h, messages.ReadInstance{Endpoint: endpoint, Instance: instance})
}

// Instances lists the gates of an endpoint's instances, or of all.
func (h *Handle) Instances(ctx context.Context, ask messages.ListInstances) (messages.Instances, error) {
	return read[messages.Instances](ctx, h, ask)
}

func read[T any](ctx context.Context, h *Handle, m any) (T, error) {
	tree, err := h.open()
	if err != nil {
		var none T
		return none, err
	}
	reader, _ := tree.Ref(plane.Reader)
	return client.Repeat[T](ctx, reader, m, readWithin, client.Passes)
}

// AwaitFence returns when the process of an instance that registered with epoch is
// fenced, with the gate that fences it: it is frozen by a successor, has another epoch,
// or, then it is zero, was never there. A process that serves awaits its own fence, and
// ends when it comes: whatever it answers after that is of no more worth. What it learns
// is what the leader holds; that something was written only has it look.
//
// It waits over outages, and fails when ctx ends, with ServiceClosing when the space
// does, and with Malformed or RowCorrupt.
func (h *Handle) AwaitFence(ctx context.Context, endpoint, instance string, epoch uint64) (messages.Instance, error) {
	moved, leave := h.parts.gates.Watch(endpoint, instance)
	defer leave()
	for {
		gate, err := h.ObserveGate(ctx, endpoint, instance)
		pause := lookEvery
		switch {
		case errors.Is(err, messages.InstanceNotFound):
			return messages.Instance{}, nil
		case err == nil && (gate.State != messages.InstanceOpen || gate.Epoch != epoch):
			return gate, nil
		case err == nil:
		case ctx.Err() != nil:
			return messages.Instance{}, context.Cause(ctx)
		case errors.Is(err, messages.ServiceClosing), !messages.Describe(err).Retryable:
			return messages.Instance{}, err
		default:
			pause = lookAgain
		}
		if err := h.wait(ctx, moved, pause); err != nil {
			return messages.Instance{}, err
		}
	}
}

// wait returns at a nudge or after a pause, and fails when nothing is to be awaited any
// more.
func (h *Handle) wait(ctx context.Context, moved <-chan struct{}, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-moved:
		return nil
	case <-timer.C:
		return nil
	case <-h.closing:
		return messages.ServiceClosing
	case <-h.Failed():
		return messages.ServiceClosing.From(h.Err())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
