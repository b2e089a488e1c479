package space

import (
	"context"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/platform"
	"github.com/cotal-ai/authplane/actors/runs"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
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
// It is asked in the account of the principals: the process connects there with what
// IssueInstanceCredential gives it, for which ControllerPrincipal of PlatformOwner and the
// instance needs a grant that lets it serve. What AskPlatformController gives is in the
// account of services, and is not seen here.
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
	gate, err := h.assigned(ctx, at)
	if err != nil {
		return messages.Readiness{}, err
	}
	ask := messages.ReadReadiness{Endpoint: at.Endpoint, Instance: at.Instance, Epoch: gate.Epoch}
	if gate.State != messages.InstanceOpen {
		return messages.Readiness{Endpoint: ask.Endpoint, Instance: ask.Instance, Epoch: ask.Epoch}, nil
	}
	return h.parts.readiness.Read(ctx, tree, ask)
}

// AskPlatformController answers the controller of the assigned instance at one of its
// doors, for whoever hosts this space: with what AskController gives a person who may
// supervise. The assignment is read before anything is written, and again before anything
// is signed. The refusals are those of messages.AskPlatformController, and those that
// pass.
func (h *Handle) AskPlatformController(ctx context.Context, at messages.PlatformPlace, r messages.ControllerRequest) (messages.ControllerIssued, error) {
	err := controller.Check(r)
	if err == nil {
		err = platform.About(at, r.Endpoint, r.Instance)
	}
	if err == nil {
		_, err = h.assigned(ctx, at)
	}
	if err != nil {
		return messages.ControllerIssued{}, err
	}
	return askIssuer[messages.ControllerIssued](ctx, h, messages.AskPlatformController{At: at, Request: r})
}

// EvictPlatformFamily is EvictFamily for whoever hosts this space, about the instance that
// is assigned to it.
func (h *Handle) EvictPlatformFamily(ctx context.Context, at messages.PlatformPlace, principals []messages.Principal) (messages.FamilyEvicted, error) {
	if _, err := h.assigned(ctx, at); err != nil {
		return messages.FamilyEvicted{}, err
	}
	return h.EvictFamily(ctx, messages.EvictFamily{Endpoint: at.Endpoint, Instance: at.Instance, Principals: principals})
}

// RepairPlatformInstance is RepairInstance for whoever hosts this space, about the
// instance that is assigned to it.
func (h *Handle) RepairPlatformInstance(ctx context.Context, at messages.PlatformPlace) (messages.InstanceRegistered, error) {
	if _, err := h.assigned(ctx, at); err != nil {
		return messages.InstanceRegistered{}, err
	}
	return h.RepairInstance(ctx, at.Endpoint, at.Instance)
}

// AdmitPlatformRun is AdmitControllerRun for the controller of the assigned instance,
// whose actor is messages.PlatformActor: it shows the receipt that AskPlatformController
// gave it. The assignment is read before anything is written, and again before anything is
// released.
func (h *Handle) AdmitPlatformRun(ctx context.Context, at messages.PlatformPlace, ask messages.AdmitRun) (messages.RunAdmitted, error) {
	var err error
	if ask.Controller, err = h.drives(ctx, at, ask.Controller); err != nil {
		return messages.RunAdmitted{}, err
	}
	return onRuns(h, func(tree *supervisor.Tree) (messages.RunAdmitted, error) {
		return h.runs.Admit(ctx, tree, runs.Platform(at), ask)
	})
}

// AttemptPlatformRun is AttemptControllerRun for the controller of the assigned instance.
// What was signed while the assignment changed is withheld.
func (h *Handle) AttemptPlatformRun(ctx context.Context, at messages.PlatformPlace, ask messages.AttemptRun) (messages.RunAttempted, error) {
	var err error
	if ask.Controller, err = h.drives(ctx, at, ask.Controller, ask.Driver, ask.Mediator); err != nil {
		return messages.RunAttempted{}, err
	}
	return onRuns(h, func(tree *supervisor.Tree) (messages.RunAttempted, error) {
		return h.runs.Attempt(ctx, tree, runs.Platform(at), ask)
	})
}

// OperatePlatformRun is OperateControllerRun for the controller of the assigned instance,
// as AttemptPlatformRun is.
func (h *Handle) OperatePlatformRun(ctx context.Context, at messages.PlatformPlace, ask messages.OperateRun) (messages.RunOperated, error) {
	var err error
	if ask.Controller, err = h.drives(ctx, at, ask.Controller, ask.Key); err != nil {
		return messages.RunOperated{}, err
	}
	return onRuns(h, func(tree *supervisor.Tree) (messages.RunOperated, error) {
		return h.runs.Operate(ctx, tree, runs.Platform(at), ask)
	})
}

// drives refuses whoever is not the controller of the assigned instance.
func (h *Handle) drives(ctx context.Context, at messages.PlatformPlace, c messages.RunController, others ...string) (messages.RunController, error) {
	if err := platform.About(at, c.Endpoint, c.Instance); err != nil {
		return c, err
	}
	if _, err := h.assigned(ctx, at); err != nil {
		return c, err
	}
	return elsewhere(h.parts.platform.Owner(), c, others...)
}

// assigned reads, anew, whether a place is assigned, and the gate of its instance, which
// has to be the platform's.
func (h *Handle) assigned(ctx context.Context, at messages.PlatformPlace) (messages.Instance, error) {
	if _, err := h.open(); err != nil {
		return messages.Instance{}, err
	}
	if _, err := h.parts.platform.Admit(ctx, at); err != nil {
		return messages.Instance{}, err
	}
	gate, err := h.ObserveGate(ctx, at.Endpoint, at.Instance)
	if err == nil {
		err = h.parts.platform.Owns(gate)
	}
	if err != nil {
		return messages.Instance{}, err
	}
	return gate, nil
}
