package face

import (
	"context"
	"net/http"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// Runs shows runs, and revokes one. It is safe for concurrent use.
type Runs interface {
	// Runs lists the runs of an endpoint, or all; Run tells one of them.
	Runs(context.Context, messages.ListRuns) (messages.Runs, error)
	Run(context.Context, messages.ShowRun) (messages.Run, error)
	RevokeRun(context.Context, messages.RevokeRun) (messages.RunRevocation, error)
}

// admissionView is who started a run, and the most that it may ever do.
type admissionView struct {
	Endpoint   string   `json:"endpoint"`
	Run        string   `json:"run"`
	Instance   string   `json:"instance"`
	Owner      string   `json:"owner"`
	Actor      string   `json:"actor"`
	UID        string   `json:"uid"`
	Publish    []string `json:"publish"`
	Subscribe  []string `json:"subscribe"`
	Witness    string   `json:"witness"`
	AdmittedAt string   `json:"admitted_at"`
}

// runView is a run as an operator sees it.
type runView struct {
	admissionView
	// Revoked is null for a run that was not.
	Revoked *revocationView `json:"revoked"`
}

type revocationView struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
	At     string `json:"at"`
}

// revokedView is a revocation where nothing else is told of the run.
type revokedView struct {
	Endpoint string `json:"endpoint"`
	Run      string `json:"run"`
	*revocationView
}

func viewRevoked(r messages.RunRevocation) revokedView {
	return revokedView{r.Endpoint, r.Run, viewRevocation(r)}
}

type attemptView struct {
	Attempt    uint64 `json:"attempt"`
	Epoch      uint64 `json:"epoch"`
	Takeover   string `json:"takeover"`
	Driver     string `json:"driver"`
	Mediator   string `json:"mediator"`
	ReservedAt string `json:"reserved_at"`
	ExpiresAt  string `json:"expires_at"`
}

func viewAdmission(a messages.RunAdmission) admissionView {
	return admissionView{Endpoint: a.Endpoint, Run: a.Run, Instance: a.Instance, Owner: a.Caller.Owner, Actor: a.Caller.Actor, UID: a.UID,
		Publish: listed(a.Publish), Subscribe: listed(a.Subscribe), Witness: a.Witness, AdmittedAt: a.AdmittedAt.UTC().Format(time.RFC3339)}
}

func viewAttempt(a messages.RunAttempt) attemptView {
	return attemptView{Attempt: a.Attempt, Epoch: a.Epoch, Takeover: a.Takeover, Driver: a.Driver, Mediator: a.Mediator,
		ReservedAt: a.ReservedAt.UTC().Format(time.RFC3339), ExpiresAt: a.Expires.UTC().Format(time.RFC3339)}
}

func viewRun(r messages.Run) runView {
	v := runView{admissionView: viewAdmission(r.Admission)}
	if r.Revoked.Run != "" {
		v.Revoked = viewRevocation(r.Revoked)
	}
	return v
}

func viewRevocation(r messages.RunRevocation) *revocationView {
	return &revocationView{By: r.By, Reason: r.Reason, At: r.RevokedAt.UTC().Format(time.RFC3339)}
}

// listRuns answers GET /v1/runs and GET /v1/runs/{endpoint}. Runs whose rows cannot be
// read are named, and hide no other.
func (f *Face) listRuns(ctx context.Context, c *call) error {
	all, err := f.runs.Runs(ctx, messages.ListRuns{Endpoint: c.parts["endpoint"]})
	if err != nil {
		return err
	}
	views := make([]runView, len(all.Items))
	for i, one := range all.Items {
		views[i] = viewRun(one)
	}
	c.json(http.StatusOK, map[string]any{"runs": views, "unreadable": listed(all.Unreadable)})
	return nil
}

// showRun answers GET /v1/runs/{endpoint}/{run}, with its attempts.
func (f *Face) showRun(ctx context.Context, c *call) error {
	one, err := f.runs.Run(ctx, messages.ShowRun{Endpoint: c.parts["endpoint"], Run: c.parts["run"]})
	if err != nil {
		return err
	}
	attempts := make([]attemptView, len(one.Attempts))
	for i, a := range one.Attempts {
		attempts[i] = viewAttempt(a)
	}
	c.json(http.StatusOK, struct {
		runView
		Attempts []attemptView `json:"attempts"`
	}{viewRun(one), attempts})
	return nil
}

// revokeRun answers POST /v1/runs/{endpoint}/{run}/revoke with the first revocation of
// the run. Who revokes is the operator: nobody says so himself.
func (f *Face) revokeRun(ctx context.Context, c *call) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	ask := messages.RevokeRun{Endpoint: c.parts["endpoint"], Run: c.parts["run"], Reason: in.text("reason")}
	if err := in.done(); err != nil {
		return err
	}
	revoked, err := f.runs.RevokeRun(ctx, ask)
	if err != nil {
		return err
	}
	c.json(http.StatusOK, viewRevoked(revoked))
	return nil
}
