package face

import (
	"context"
	"errors"
	"net/http"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

// Enrolments enrols machines, and makes what they need. It is safe for concurrent use.
type Enrolments interface {
	// Enroll grants a machine that made its secret itself.
	Enroll(context.Context, messages.EnrolMachine) (messages.MachineEnrolled, error)
	// Enrolment tells what was enrolled with a secret.
	Enrolment(ctx context.Context, tokenHash string) (messages.MachineEnrolled, error)
	// Provisions reports whether machines need anything besides their grant; then Grant
	// grants one together with that.
	Provisions() bool
	Grant(context.Context, messages.EnrolMachine) (messages.MachineEnrolled, error)
	// Revoked tells that a machine may need nothing any more.
	Revoked()
}

// enrolledView is a machine that is enrolled. Whoever asks made the secret; it is no part
// of it.
type enrolledView struct {
	grantView
	Step  messages.ProvisionStep `json:"step"`
	Again bool                   `json:"again"`
	// ExchangeURL is where it turns its secret into bearers.
	ExchangeURL string `json:"exchange_url"`
	Space       string `json:"space"`
}

func (f *Face) enrolled(m messages.MachineEnrolled) enrolledView {
	return enrolledView{grantView: viewOf(m.Grant), Step: m.Step, Again: m.Again, ExchangeURL: m.ExchangeURL, Space: f.config.Space}
}

// enroll answers POST /v1/enroll: 201 for a machine that is new, 200 for one that was
// enrolled with this secret before.
func (f *Face) enroll(ctx context.Context, c *call) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	ask, err := f.readEnrolment(in)
	if err != nil {
		return err
	}
	c.about = ask.Principal
	m, err := f.enrolments.Enroll(ctx, ask)
	if errors.Is(err, messages.IncarnationStanding) {
		if err := f.awaitEnd(ctx, c, ask.Principal); err != nil {
			return err
		}
		m, err = f.enrolments.Enroll(ctx, ask)
	}
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if m.Again {
		status = http.StatusOK
	}
	c.json(status, f.enrolled(m))
	return nil
}

// readEnrolment reads what an enrolment may say. Who the next incarnation is, is never
// said by who asks.
func (f *Face) readEnrolment(in *input) (messages.EnrolMachine, error) {
	hash := in.text("token_hash")
	put, err := f.readMachine(in)
	return messages.EnrolMachine{Principal: put.Principal, TokenHash: hash, Allowance: put.Allowance, Parent: put.Parent, Label: put.Label, By: put.By}, err
}

// readMachine reads a grant that can only be a machine's.
func (f *Face) readMachine(in *input) (messages.PutGrant, error) {
	if in.has("kind") {
		return messages.PutGrant{}, messages.Malformed.Because("kind is managed here, and is not sent")
	}
	in.fields["kind"] = []byte(`"managed"`)
	return f.readPut(in)
}

// showEnrolment answers GET /v1/enroll/{token_hash}.
func (f *Face) showEnrolment(ctx context.Context, c *call) error {
	m, err := f.enrolments.Enrolment(ctx, c.parts["token_hash"])
	if err != nil {
		return err
	}
	c.json(http.StatusOK, f.enrolled(m))
	return nil
}

// write writes a grant: a machine's together with what it needs, where it needs anything.
func (f *Face) write(ctx context.Context, put messages.PutGrant) (messages.GrantWritten, error) {
	if put.Kind != messages.Managed || f.enrolments == nil || !f.enrolments.Provisions() {
		return f.config.Authority.PutGrant(ctx, put)
	}
	secret, hash := identity.NewActorToken()
	m, err := f.enrolments.Grant(ctx, messages.EnrolMachine{Principal: put.Principal, TokenHash: hash, Allowance: put.Allowance,
		Parent: put.Parent, Label: put.Label, By: put.By})
	if err != nil {
		if messages.Describe(err).Retryable { // if it is made, nobody has its secret
			err = messages.OutcomeUnknown.From(err)
		}
		return messages.GrantWritten{}, err
	}
	return messages.GrantWritten{Principal: m.Grant.Principal, UID: m.Grant.UID, Revision: m.Grant.Revision, ActorToken: secret}, nil
}
