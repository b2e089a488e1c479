package space

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/maintenance"
	"github.com/cotal-ai/authplane/actors/plane"
	"github.com/cotal-ai/authplane/messages"
)

// controllerWithin is how long a controller's question is asked, over the restart of the
// issuer.
const controllerWithin = 20 * time.Second

// ControllerPrincipal is whose instance a controller is that somebody of an owner runs:
// a host registers it as this one, with RegisterHostInstance.
//
// What a controller was issued is in the account of services, where connects are nobody's
// to decide: a process that was superseded may stay connected, and come back, until its
// credentials run out. They let it say and hear what has its own epoch in its subject,
// and that of no successor; Config.ControllerLifetime bounds how long.
func ControllerPrincipal(owner, instance string) messages.Principal {
	return controller.Principal(owner, instance)
}

// AskController answers a controller at one of its doors, for a person whose proof the
// caller has checked: what he may do is read from the ledger. What it returns is
// recorded; asking the same again has the same answer. The refusals are those of
// messages.AskController, and those that pass: ServiceClosing, ActorAway, BrokerAway,
// Contended, OutcomeUnknown.
func (h *Handle) AskController(ctx context.Context, ask messages.AskController) (messages.ControllerIssued, error) {
	if err := controller.Check(ask.Request); err != nil {
		return messages.ControllerIssued{}, err
	}
	return askIssuer[messages.ControllerIssued](ctx, h, ask)
}

// Controllers lists the instances that are run by controllers.
func (h *Handle) Controllers(ctx context.Context) (messages.Controllers, error) {
	return askIssuer[messages.Controllers](ctx, h, messages.ListControllers{})
}

// EvictFamily drops the connections of some whom an instance's credentials were issued
// to, and says of each what is proved. Whoever embeds the space may call it, for any
// instance. The refusals are messages.Malformed, InstanceNotFound, FamilyOutsider and
// SystemAbsent, and those that pass.
func (h *Handle) EvictFamily(ctx context.Context, ask messages.EvictFamily) (messages.FamilyEvicted, error) {
	if err := maintenance.CheckEviction(ask); err != nil {
		return messages.FamilyEvicted{}, err
	}
	tree, err := h.open()
	if err != nil {
		return messages.FamilyEvicted{}, err
	}
	return maintenance.New(h.hosts).Evict(ctx, tree, ask)
}

func askIssuer[T any](ctx context.Context, h *Handle, m any) (T, error) {
	var none T
	tree, err := h.open()
	if err != nil {
		return none, err
	}
	to, _ := tree.Ref(plane.Issuer)
	answer, err := client.Repeat[T](ctx, to, m, controllerWithin, client.Passes)
	return answer, client.Unsaid(err)
}

// controllers is what the issuer needs to answer them.
func (h *Handle) controllers() controller.Config {
	return controller.Config{
		Space: h.config.Space, ReceiptKey: h.parts.material.ReceiptKey(), Standing: h.config.ControllerLifetime,
		Sign:    func(u broker.ControllerUser) (string, error) { return broker.MintController(h.parts.material, u) },
		Options: ledger.Options{},
	}
}
