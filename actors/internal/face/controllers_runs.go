package face

import (
	"context"
	"net/http"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/messages"
)

// ControllerRuns answers controllers elsewhere about runs, each on behalf of a person whose
// proof was checked, and certifies the keys of those who start runs. It judges the receipt,
// which is part of every question but the last. It is safe for concurrent use.
type ControllerRuns interface {
	AdmitControllerRun(context.Context, messages.ControllerPerson, messages.AdmitRun) (messages.RunAdmitted, error)
	AttemptControllerRun(context.Context, messages.ControllerPerson, messages.AttemptRun) (messages.RunAttempted, error)
	OperateControllerRun(context.Context, messages.ControllerPerson, messages.OperateRun) (messages.RunOperated, error)
	RevokeControllerRun(context.Context, messages.ControllerPerson, messages.RevokeControllerRun) (messages.RunRevocation, error)
	BindRunCaller(messages.BindRunCaller) (messages.RunCallerBound, error)
}

// runDoor is one of the doors at which controllers ask about runs. The body is that of a
// controller's door which takes the receipt, with the members of the question besides: see
// controller.ParseAdmission and its neighbours.
func runDoor(serve func(context.Context, *call) error) endpoint {
	return endpoint{queued: true, proves: true, media: []string{mediaJSON}, most: controller.MaxRunEnvelope, serve: serve}
}

// admittedView is an admission as the controller hears of it, under its own question's id.
type admittedView struct {
	RequestID string `json:"request_id"`
	admissionView
	// Revision is the record's.
	Revision uint64 `json:"revision"`
}

// admitRun answers POST /v1/controllers/runs/admit.
func (f *Face) admitRun(ctx context.Context, c *call) error {
	ask, id, err := controller.ParseAdmission(c.body)
	if err != nil {
		return err
	}
	person, err := f.holder(ctx, c, ask.Controller)
	if err != nil {
		return err
	}
	admitted, err := f.public.Runs.AdmitControllerRun(ctx, person, ask)
	if err != nil {
		return err
	}
	c.json(http.StatusOK, admittedView{id, viewAdmission(admitted.Admission), admitted.Revision})
	return nil
}

// attemptedView is what the next driver of a run is given.
type attemptedView struct {
	RequestID string `json:"request_id"`
	Endpoint  string `json:"endpoint"`
	Run       string `json:"run"`
	Instance  string `json:"instance"`
	attemptView
	// Head is the sequence of the journal's last record, as it was known.
	Head        uint64 `json:"head"`
	Credentials struct {
		Driver   credentialView `json:"driver"`
		Mediator credentialView `json:"mediator"`
	} `json:"credentials"`
}

// attemptRun answers POST /v1/controllers/runs/attempt.
func (f *Face) attemptRun(ctx context.Context, c *call) error {
	ask, err := controller.ParseAttempt(c.body)
	if err != nil {
		return err
	}
	person, err := f.holder(ctx, c, ask.Controller)
	if err != nil {
		return err
	}
	got, err := f.public.Runs.AttemptControllerRun(ctx, person, ask)
	if err != nil {
		return err
	}
	view := attemptedView{RequestID: got.Attempt.Request, Endpoint: got.Attempt.Endpoint, Run: got.Attempt.Run, Instance: got.Attempt.Instance,
		attemptView: viewAttempt(got.Attempt), Head: got.Attempt.Head}
	view.Credentials.Driver, view.Credentials.Mediator = viewRunCredential(got.Driver), viewRunCredential(got.Mediator)
	c.json(http.StatusOK, view)
	return nil
}

// operatedView is what a reader of a journal is given, or somebody who answers a pause.
type operatedView struct {
	RequestID  string         `json:"request_id"`
	Endpoint   string         `json:"endpoint"`
	Run        string         `json:"run"`
	Credential credentialView `json:"credential"`
	// Subject is where the answer goes; empty for reading.
	Subject string `json:"subject"`
}

// operateRun answers POST /v1/controllers/runs/operate.
func (f *Face) operateRun(ctx context.Context, c *call) error {
	ask, id, err := controller.ParseOperation(c.body)
	if err != nil {
		return err
	}
	person, err := f.holder(ctx, c, ask.Controller)
	if err != nil {
		return err
	}
	got, err := f.public.Runs.OperateControllerRun(ctx, person, ask)
	if err != nil {
		return err
	}
	c.json(http.StatusOK, operatedView{id, ask.Controller.Endpoint, ask.Run, viewRunCredential(got.Credential), got.Subject})
	return nil
}

// revokeOwnRun answers POST /v1/controllers/runs/revoke, with the first revocation of the
// run. Who revokes is the person whose proof it is.
func (f *Face) revokeOwnRun(ctx context.Context, c *call) error {
	ask, id, err := controller.ParseRevocation(c.body)
	if err != nil {
		return err
	}
	person, err := f.holder(ctx, c, ask.Controller)
	if err != nil {
		return err
	}
	revoked, err := f.public.Runs.RevokeControllerRun(ctx, person, ask)
	if err != nil {
		return err
	}
	c.json(http.StatusOK, struct {
		RequestID string `json:"request_id"`
		revokedView
	}{id, viewRevoked(revoked)})
	return nil
}

// holder is whom the proof names, on whose behalf a controller asks. Once that is proved
// what is refused is no failed proof: a controller forwards what others made up, and has to
// hear of each of it that it is, however often.
func (f *Face) holder(ctx context.Context, c *call, who messages.RunController) (messages.ControllerPerson, error) {
	person, err := f.person(ctx, c.r.Header["Authorization"], who.Actor)
	c.about = person.Principal
	if err == nil {
		c.to.proves = false
	}
	return person, err
}

func viewRunCredential(r messages.RunCredential) credentialView {
	return credentialView{User: r.Key, JWT: r.JWT, ExpiresAt: atSecond(r.Expires)}
}

// bindCaller answers POST /v1/runs/bind: a certificate that the key of the body,
// `{"key":U…}`, is whose bearer of the space stands in the header. It holds as long as the
// bearer.
func (f *Face) bindCaller(_ context.Context, c *call) error {
	headers := c.r.Header["Authorization"]
	if len(headers) != 1 || bearerIn(headers[0]) == "" {
		return messages.ProofMissing
	}
	in, err := c.input()
	if err != nil {
		return err
	}
	ask := messages.BindRunCaller{Bearer: messages.NewSecret(bearerIn(headers[0])), Key: in.text("key")}
	if err := in.done(); err != nil {
		return err
	}
	bound, err := f.public.Runs.BindRunCaller(ask)
	if err != nil {
		return err
	}
	c.json(http.StatusOK, map[string]string{"certificate": bound.Certificate, "expires_at": atSecond(bound.Expires)})
	return nil
}
