package callout

import (
	"context"
	"log/slog"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// retryPause lies between two questions to a reader that cannot answer yet.
const retryPause = 20 * time.Millisecond

// Verifier verifies bearers.
type Verifier interface {
	// Verify refuses with ProofMissing, ProofInvalid or ProofExpired.
	Verify(token string, now time.Time) (identity.Bearer, error)
}

// decision decides single requests.
type decision struct {
	Config
	reader supervisor.Ref
	// noted is told how every read ended.
	noted func(error)
	log   *slog.Logger
}

func newDecision(life *supervisor.Life, config Config) *decision {
	return &decision{Config: config, reader: life.Ref(config.Reader), log: life.Log()}
}

// make answers one request, or leaves it unanswered, and records every outcome
// that is not an admission. It reports whether an answer was sent.
func (d *decision) make(ctx context.Context, a *arrival, deadline time.Time) (sent bool) {
	began := d.Now()
	request, err := d.Opener.Open(a.message.Header.Get(connect.SealHeader), a.message.Data)
	if err != nil {
		d.record(names.NewUID(), messages.Principal{}, err)
		return false
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	v, err := d.judge(ctx, request)
	if err == nil || connect.KindOf(err) == messages.Denied {
		failed := d.answer(a, request, v.admission, err, deadline)
		if sent = failed == nil; !sent {
			err = failed
		}
	}
	if err != nil {
		d.record(request.ID, v.principal, err)
		return sent
	}
	d.Metrics.admitted(d.Now().Sub(began), v.reading)
	return sent
}

// verdict is what is known of a request, as far as its decision came.
type verdict struct {
	admission connect.Admission
	// principal is that of a verified bearer, and zero before.
	principal messages.Principal
	// reading is how long the reader was waited for.
	reading time.Duration
}

// judge finds out whether the request is admitted.
func (d *decision) judge(ctx context.Context, request connect.Request) (v verdict, err error) {
	bearer, err := d.Verifier.Verify(request.Token.Reveal(), d.Now())
	if err != nil {
		return v, err
	}
	v.principal = bearer.Principal
	asked := d.Now()
	authority, err := read[messages.Authority](ctx, d, messages.ReadAuthority{Principal: bearer.Principal, Head: true})
	if err == nil && connect.Descends(bearer, authority) {
		var found messages.CredentialRead
		found, err = read[messages.CredentialRead](ctx, d, messages.ReadCredential{UID: bearer.UID, ID: bearer.CredentialID})
		authority.HasCredential, authority.Credential = found.Found, found.Credential
	}
	var process messages.ProcessRead
	of := bearer.Process
	if err == nil && !of.IsZero() {
		process, err = read[messages.ProcessRead](ctx, d, messages.ReadProcess{Endpoint: of.Endpoint, Instance: of.Instance, CredentialID: of.CredentialID})
	}
	v.reading = d.Now().Sub(asked)
	switch {
	case err != nil:
	case of.IsZero():
		v.admission, err = d.Judge.Decide(bearer, authority, d.Now())
	default:
		v.admission, err = d.Judge.DecideProcess(bearer, authority, process, d.Now())
	}
	return v, err
}

// read asks the reader, again while it cannot answer and there is time.
func read[T any](ctx context.Context, d *decision, what any) (answer T, err error) {
	for {
		answer, err = client.Ask[T](ctx, d.reader, what)
		d.noted(err)
		if err == nil || !messages.Describe(err).Retryable {
			return answer, err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return answer, err
		}
	}
}

// answer signs, seals and sends. What is late by now stays unsent.
func (d *decision) answer(a *arrival, r connect.Request, admission connect.Admission, denial error, deadline time.Time) error {
	now := d.Now()
	if now.After(deadline) {
		return messages.TooLate
	}
	var sealed []byte
	var err error
	if denial == nil {
		sealed, err = d.Answerer.Admit(r, admission, now)
	} else {
		sealed, err = d.Answerer.Deny(r, denial, now)
	}
	if err != nil {
		return err
	}
	if err := a.message.Respond(sealed); err != nil {
		return messages.BrokerAway.From(err)
	}
	return nil
}

// shed records a request that nobody worked on.
func (d *decision) shed(a *arrival, why messages.Error) {
	defer a.done()
	d.record(names.NewUID(), messages.Principal{}, why)
}

func (d *decision) record(id string, p messages.Principal, why error) {
	denial := connect.NewDenial(id, p, why, d.Now())
	d.Denials.Record(denial)
	d.Metrics.refused(denial.Kind, denial.Reason)
	d.log.Info("connect not admitted", "request", id, "kind", string(denial.Kind), "reason", denial.Reason, "principal", denial.Principal)
}
