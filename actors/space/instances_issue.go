package space

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/issuer"
	"github.com/cotal-ai/authplane/actors/plane"
	"github.com/cotal-ai/authplane/actors/registrar"
	"github.com/cotal-ai/authplane/messages"
)

// issueWithin is how long a credential is tried to be issued, over the restart of
// whoever does it.
const issueWithin = 15 * time.Second

// IssueInstanceCredential returns a bearer of one process of an instance, for the process
// that RegisterHostInstance made the one of that epoch. It is one of the instance's own
// principal, and lets in as one does, but only as long as that process is the one which
// is registered: from the moment on at which the next one registers, or a registration
// freezes the gate, it lets nobody in. So a process registers, is issued its bearer, and
// connects with that and nothing else, and its successor need not fear that it comes back.
//
// The principal needs a live grant, as it does at the exchange; its first bearer may be
// this one. lifetime is 1 s to 900 s, in whole seconds, 0 for the longest, and is cut to
// Config.BearerLifetime, and for a machine's to 300 s. The bearer is renewed by calling
// again before it lapses; a connection ends with the bearer that opened it.
//
// Whoever embeds the space may call it, and whoever has the capability of its loopback
// face, for any instance: nobody else has a way to. It is refused with InstanceNotFound,
// InstanceSuperseded when another process is registered, InstanceNotOpen while a
// registration holds the gate, InstanceForeign for the instances of this service itself,
// NotGranted, ParentMissing, ScopeExceeded, GateShut, IncarnationEnded, CredentialGone and
// Malformed; those that pass are ServiceClosing, ActorAway, Unproved, BrokerAway, Contended
// and OutcomeUnknown. Whatever it fails with, no bearer was released, and calling again
// goes on from there.
func (h *Handle) IssueInstanceCredential(ctx context.Context, endpoint, instance string, epoch uint64, lifetime time.Duration) (messages.InstanceCredentialIssued, error) {
	var none messages.InstanceCredentialIssued
	if err := ledger.CheckInstance(endpoint, instance); err != nil {
		return none, err
	}
	if err := issuer.CheckLifetime(lifetime); err != nil {
		return none, err
	}
	tree, err := h.open()
	if err != nil {
		return none, err
	}
	if endpoint == registrar.Endpoint {
		return none, messages.InstanceForeign.Because("the instances of %s are this service's own", endpoint)
	}
	to, _ := tree.Ref(plane.Issuer)
	ask := messages.IssueInstanceCredential{Endpoint: endpoint, Instance: instance, Epoch: epoch, Lifetime: lifetime}
	return client.Repeat[messages.InstanceCredentialIssued](ctx, to, ask, issueWithin, client.Passes)
}
