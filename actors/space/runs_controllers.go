package space

import (
	"context"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/runs"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// AdmitControllerRun is AdmitRun for a controller elsewhere, which shows its receipt, on
// behalf of a person whose proof the caller has checked. What he may do, and which process
// is the registered one, is read from the ledger before anything is written, and again
// before anything is released. The controller's Principal is ControllerPrincipal's,
// whatever it says. Besides the refusals of AdmitRun it has those of
// messages.CheckController.
func (h *Handle) AdmitControllerRun(ctx context.Context, person messages.ControllerPerson, ask messages.AdmitRun) (messages.RunAdmitted, error) {
	var err error
	if ask.Controller, err = elsewhere(person.Principal.Owner, ask.Controller); err != nil {
		return messages.RunAdmitted{}, err
	}
	return onRuns(h, func(tree *supervisor.Tree) (messages.RunAdmitted, error) {
		return h.runs.Admit(ctx, tree, runs.Person(person), ask)
	})
}

// AttemptControllerRun is AttemptRun for a controller elsewhere, as AdmitControllerRun says.
func (h *Handle) AttemptControllerRun(ctx context.Context, person messages.ControllerPerson, ask messages.AttemptRun) (messages.RunAttempted, error) {
	var err error
	if ask.Controller, err = elsewhere(person.Principal.Owner, ask.Controller, ask.Driver, ask.Mediator); err != nil {
		return messages.RunAttempted{}, err
	}
	return onRuns(h, func(tree *supervisor.Tree) (messages.RunAttempted, error) {
		return h.runs.Attempt(ctx, tree, runs.Person(person), ask)
	})
}

// OperateControllerRun is OperateRun for a controller elsewhere, as AdmitControllerRun says.
func (h *Handle) OperateControllerRun(ctx context.Context, person messages.ControllerPerson, ask messages.OperateRun) (messages.RunOperated, error) {
	var err error
	if ask.Controller, err = elsewhere(person.Principal.Owner, ask.Controller, ask.Key); err != nil {
		return messages.RunOperated{}, err
	}
	return onRuns(h, func(tree *supervisor.Tree) (messages.RunOperated, error) {
		return h.runs.Operate(ctx, tree, runs.Person(person), ask)
	})
}

// RevokeControllerRun revokes a run of the controller's own instance, in the person's name,
// as AdmitControllerRun says. See messages.RevokeControllerRun.
func (h *Handle) RevokeControllerRun(ctx context.Context, person messages.ControllerPerson, ask messages.RevokeControllerRun) (messages.RunRevocation, error) {
	var err error
	if ask.Controller, err = elsewhere(person.Principal.Owner, ask.Controller); err != nil {
		return messages.RunRevocation{}, err
	}
	return onRuns(h, func(tree *supervisor.Tree) (messages.RunRevocation, error) {
		return h.runs.RevokeOwn(ctx, tree, runs.Person(person), person.Principal, ask)
	})
}

// elsewhere is a controller of somebody's owner: it has a receipt, and keys that are none
// of those which it asks for.
func elsewhere(owner string, c messages.RunController, others ...string) (messages.RunController, error) {
	c.Principal = controller.Principal(owner, c.Instance)
	return c, controller.CheckProcess(c, others...)
}
