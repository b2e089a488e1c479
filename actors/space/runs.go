package space

import (
	"context"

	"github.com/cotal-ai/authplane/actors/internal/run"
	"github.com/cotal-ai/authplane/actors/operations"
	"github.com/cotal-ai/authplane/actors/plane"
	"github.com/cotal-ai/authplane/actors/runs"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// AdmitRun admits a run that somebody started with a request, for the controller who got
// that; see messages.AdmitRun. The controller is part of the caller's own program, which
// registered its instance with RegisterHostInstance: it shows no receipt, here and at
// AttemptRun and OperateRun, and what came from elsewhere is for AdmitControllerRun.
//
// A run is admitted once: the same question has the same answer, whoever answers it. The
// most that it may ever do is what its starter's grant allows when it is admitted. Besides
// it fails with what passes: ServiceClosing, ActorAway, BrokerAway, Contended,
// OutcomeUnknown.
func (h *Handle) AdmitRun(ctx context.Context, ask messages.AdmitRun) (messages.RunAdmitted, error) {
	return onRuns(h, func(tree *supervisor.Tree) (messages.RunAdmitted, error) {
		return h.runs.Admit(ctx, tree, runs.Host(), ask)
	})
}

// AttemptRun issues to the next driver of a run, for keys that the controller made; see
// messages.AttemptRun. It fails as AdmitRun does besides.
func (h *Handle) AttemptRun(ctx context.Context, ask messages.AttemptRun) (messages.RunAttempted, error) {
	return onRuns(h, func(tree *supervisor.Tree) (messages.RunAttempted, error) {
		return h.runs.Attempt(ctx, tree, runs.Host(), ask)
	})
}

// OperateRun issues to whoever reads the journal of a run, or answers a pause of it; see
// messages.OperateRun. It fails as AdmitRun does besides.
func (h *Handle) OperateRun(ctx context.Context, ask messages.OperateRun) (messages.RunOperated, error) {
	return onRuns(h, func(tree *supervisor.Tree) (messages.RunOperated, error) {
		return h.runs.Operate(ctx, tree, runs.Host(), ask)
	})
}

// RevokeRun revokes a run: nothing is issued for it any more. What was issued runs out by
// itself. See messages.RevokeRun.
func (h *Handle) RevokeRun(ctx context.Context, ask messages.RevokeRun) (messages.RunRevocation, error) {
	return onRuns(h, func(tree *supervisor.Tree) (messages.RunRevocation, error) { return h.runs.Revoke(ctx, tree, ask) })
}

// Runs lists the runs of an endpoint, or all.
func (h *Handle) Runs(ctx context.Context, ask messages.ListRuns) (messages.Runs, error) {
	return onRuns(h, func(tree *supervisor.Tree) (messages.Runs, error) { return h.runs.List(ctx, tree, ask) })
}

// Run tells one run, with all who drove it.
func (h *Handle) Run(ctx context.Context, ask messages.ShowRun) (messages.Run, error) {
	return onRuns(h, func(tree *supervisor.Tree) (messages.Run, error) { return h.runs.Show(ctx, tree, ask) })
}

// BindRunCaller certifies that a key is whose bearer it is, so that he can sign requests;
// see messages.BindRunCaller.
func (h *Handle) BindRunCaller(ask messages.BindRunCaller) (messages.RunCallerBound, error) {
	return onRuns(h, func(*supervisor.Tree) (messages.RunCallerBound, error) { return h.runs.Bind(ask) })
}

func onRuns[T any](h *Handle, do func(*supervisor.Tree) (T, error)) (T, error) {
	tree, err := h.open()
	if err != nil {
		var none T
		return none, err
	}
	return do(tree)
}

func (h *Handle) runsConfig(calls *operations.Calls) runs.Config {
	config := h.planeConfig()
	of := runs.Config{
		Calls: calls, Material: h.parts.material, Keyring: h.parts.keyring, Stream: config.Stream, Remembered: h.parts.records.Remembered,
		Reader: plane.Reader, Issuer: plane.Issuer, Standing: max(h.config.ControllerLifetime, run.ShortestLife),
	}
	if h.config.ControllerLifetime == 0 {
		of.Standing = run.LongestLife
	}
	if h.config.ObserveRequests {
		of.Observer = runs.ObserverName
	}
	return of
}

// observers is who hears requests for runs, if anybody does.
func (h *Handle) observers() []supervisor.Spec {
	if !h.config.ObserveRequests {
		return nil
	}
	return []supervisor.Spec{runs.Observer(h.parts.dialer)}
}

func (h *Handle) observerNames() []string {
	if !h.config.ObserveRequests {
		return nil
	}
	return []string{runs.ObserverName}
}
