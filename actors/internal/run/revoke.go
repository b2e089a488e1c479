package run

import (
	"context"
	"fmt"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/messages"
)

// Operator is who revokes where nobody is named.
const Operator = "operator"

// Revoke revokes a run, as messages.RevokeRun says.
func (d *Desk) Revoke(ctx context.Context, ask messages.RevokeRun) (messages.RunRevocation, error) {
	if err := CheckRevocation(ask); err != nil {
		return messages.RunRevocation{}, err
	}
	answer, err := again(ctx, d, func() (messages.RunRevocation, error) { return d.revoke(ctx, ask) })
	if err != nil {
		return messages.RunRevocation{}, fmt.Errorf("revoke %s: %w", ask.Run, err)
	}
	return answer, nil
}

// RevokeOwn revokes a run of the controller's own instance on behalf of a holder, as
// messages.RevokeControllerRun says.
func (d *Desk) RevokeOwn(ctx context.Context, by messages.Principal, ask messages.RevokeControllerRun) (messages.RunRevocation, error) {
	revocation := messages.RevokeRun{Endpoint: ask.Controller.Endpoint, Run: ask.Run, Reason: ask.Reason, By: by}
	err := CheckRevocation(revocation)
	if err == nil {
		err = d.Receipts.Check(ctx, ask.Controller)
	}
	var answer messages.RunRevocation
	if err == nil {
		answer, err = again(ctx, d, func() (messages.RunRevocation, error) {
			if _, err := d.own(ctx, ask.Controller, ask.Run); err != nil {
				return messages.RunRevocation{}, err
			}
			return d.revoke(ctx, revocation)
		})
	}
	if err == nil { // whoever was overtaken meanwhile hears nothing
		err = d.Receipts.Check(ctx, ask.Controller)
	}
	if err != nil {
		return messages.RunRevocation{}, fmt.Errorf("revoke %s: %w", ask.Run, err)
	}
	return answer, nil
}

// CheckRevocation refuses what revokes nothing.
func CheckRevocation(ask messages.RevokeRun) error {
	if err := CheckName(ask.Endpoint, ask.Run); err != nil {
		return err
	}
	if !isText(ask.Reason) {
		return messages.Malformed.Because("a reason is up to %d characters in one line", maxText)
	}
	if ask.By.IsZero() {
		return nil
	}
	return names.CheckPrincipal(ask.By)
}

// CheckName refuses what cannot name a run of an endpoint.
func CheckName(endpoint, run string) error {
	if !isToken(endpoint, 1) {
		return messages.Malformed.Because("an endpoint is one token of [A-Za-z0-9_-]")
	}
	return runjournal.CheckRun(run)
}

func (d *Desk) revoke(ctx context.Context, ask messages.RevokeRun) (messages.RunRevocation, error) {
	admission, err := d.Admission(ctx, ask.Endpoint, ask.Run)
	switch {
	case err != nil:
		return messages.RunRevocation{}, err
	case !ask.By.IsZero() && !ask.Admin && ask.By.Owner != admission.Caller.Owner:
		return messages.RunRevocation{}, messages.RunExceeded.Because("the run is another owner's")
	}
	if was, revoked, err := d.Revocation(ctx, ask.Endpoint, ask.Run); err != nil || revoked {
		return was, err
	}
	r := messages.RunRevocation{Endpoint: ask.Endpoint, Run: ask.Run, By: Operator, Reason: ask.Reason, RevokedAt: wholeMillis(d.Now())}
	if !ask.By.IsZero() {
		r.By = ask.By.String()
	}
	value, err := encodeRevocation(r, names.NewUID())
	if err != nil {
		return messages.RunRevocation{}, err
	}
	key := RevocationKey(r.Endpoint, r.Run)
	_, err = d.Records.Apply(ctx, ledger.Batch{Writes: []ledger.Write{ledger.Create(key, value)}, Witness: key})
	return r, err
}

// Revocation reads whether a run was revoked.
func (d *Desk) Revocation(ctx context.Context, endpoint, run string) (messages.RunRevocation, bool, error) {
	row, found, err := d.Records.Get(ctx, RevocationKey(endpoint, run))
	if err != nil || !found {
		return messages.RunRevocation{}, false, err
	}
	r, err := DecodeRevocation(row)
	return r, true, err
}

// wholeMillis is a time as rows hold it.
func wholeMillis(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }
