package space

import (
	"cmp"
	"context"

	"github.com/cotal-ai/authplane/actors/internal/face"
	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/actors/operations"
	"github.com/cotal-ai/authplane/actors/plane"
	"github.com/cotal-ai/authplane/actors/provisioning"
	"github.com/cotal-ai/authplane/actors/retirement"
	"github.com/cotal-ai/authplane/messages"
)

// Enroll grants a machine that made its secret itself, and makes what Config.Footprint
// says; it returns when all of that is there. Asking again with the same TokenHash is the
// same question, and gets the same incarnation, held to the parents' grants as they are
// then. By may be left empty.
//
// Refused, with nothing left behind, as messages.EnrolMachine says. Besides it fails with
// what passes: ServiceClosing, ActorAway, BrokerAway, OutcomeUnknown, EnrolmentPending;
// what was begun is then finished by the next question, or in the background.
func (h *Handle) Enroll(ctx context.Context, ask messages.EnrolMachine) (messages.MachineEnrolled, error) {
	ask.By = cmp.Or(ask.By, byHost)
	if err := footprint.CheckAsk(ask); err != nil {
		return messages.MachineEnrolled{}, err
	}
	if h.PublicURL() == "" {
		return messages.MachineEnrolled{}, messages.ExchangeAbsent
	}
	return h.withExchange(h.grantMachine(ctx, ask))
}

// Enrolment tells what was enrolled with a secret, for whoever lost the answer. Refused
// with EnrolmentNotFound when that was nothing, or is no more, and with Malformed.
func (h *Handle) Enrolment(ctx context.Context, tokenHash string) (messages.MachineEnrolled, error) {
	tree, err := h.open()
	if err != nil {
		return messages.MachineEnrolled{}, err
	}
	return h.withExchange(h.provisioning.Find(ctx, tree, tokenHash))
}

func (h *Handle) withExchange(m messages.MachineEnrolled, err error) (messages.MachineEnrolled, error) {
	if url := h.PublicURL(); err == nil && url != "" {
		m.ExchangeURL = url + "/exchange"
	}
	return m, err
}

func (h *Handle) grantMachine(ctx context.Context, ask messages.EnrolMachine) (messages.MachineEnrolled, error) {
	tree, err := h.open()
	if err != nil {
		return messages.MachineEnrolled{}, err
	}
	return h.provisioning.Enrol(ctx, tree, ask)
}

// enrolments are the doors of the loopback face.
type enrolments struct{ *Handle }

var _ face.Enrolments = enrolments{}

// Provisions is face.Enrolments, as Grant is.
func (e enrolments) Provisions() bool { return !e.config.Footprint.Empty() }

func (e enrolments) Grant(ctx context.Context, ask messages.EnrolMachine) (messages.MachineEnrolled, error) {
	return e.grantMachine(ctx, ask)
}

func (e enrolments) Revoked() { e.provisioning.Look() }

func (h *Handle) provisioningConfig(calls *operations.Calls) provisioning.Config {
	return provisioning.Config{
		Calls: calls, Space: h.config.Space, Footprint: h.config.Footprint, Reader: plane.Reader, Writer: plane.Writer,
		Retirements: plane.Path + "/" + retirement.Name,
		Holder: func() (uint64, bool) {
			status := h.parts.view.Status()
			return status.Generation, status.HeldByUs
		},
	}
}

// checkFootprint notes what is wrong with the footprint.
func (c Config) checkFootprint(found *Problems) {
	for _, p := range footprint.Check(c.Footprint) {
		found.note("footprint."+p.Key, "%s", p.Text)
	}
}
