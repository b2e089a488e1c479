package space

import (
	"context"

	"github.com/cotal-ai/authplane/messages"
)

// PlatformOwner is whose principals serve what the hosting platform has assigned to this
// space: `p_` and 26 characters, the same whichever instance is assigned, and no
// person's.
func (h *Handle) PlatformOwner() string { return h.parts.platform.Owner() }

// Readiness asks the service of the assigned instance how it is, for whoever hosts this
// space. The assignment is read anew; the process that is asked is the one that is
// registered, and one that is being replaced serves no more. The service answers at
// `$SRV` under its endpoint as its name, and says in its metadata which `instance` and
// `epoch` it is.
//
// One connection is kept for it, which may ask nothing else; when another instance is
// assigned it is replaced, and reads that are under way go on. Refused with
// PlatformAbsent, NotAssigned, InstanceNotFound, with InstanceForeign for an instance
// that is not the platform's, and, retryable, with PlatformAway, ServiceClosing,
// ActorAway, Unproved and BrokerAway.
func (h *Handle) Readiness(ctx context.Context, at messages.PlatformPlace) (messages.Readiness, error) {
	tree, err := h.open()
	if err != nil {
		return messages.Readiness{}, err
	}
	if _, err := h.parts.platform.Admit(ctx, at); err != nil {
		return messages.Readiness{}, err
	}
	gate, err := h.ObserveGate(ctx, at.Endpoint, at.Instance)
	if err == nil {
		err = h.parts.platform.Owns(gate)
	}
	if err != nil {
		return messages.Readiness{}, err
	}
	ask := messages.ReadReadiness{Endpoint: at.Endpoint, Instance: at.Instance, Epoch: gate.Epoch}
	if gate.State != messages.InstanceOpen {
		return messages.Readiness{Endpoint: ask.Endpoint, Instance: ask.Instance, Epoch: ask.Epoch}, nil
	}
	return h.parts.readiness.Read(ctx, tree, ask)
}
