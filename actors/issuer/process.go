package issuer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// readWithin and enrolWithin bound what the other actors are asked, repetitions
	// included.
	readWithin  = 5 * time.Second
	enrolWithin = 10 * time.Second
	// machineLife is the longest life of a bearer of a machine, as at the exchange.
	machineLife = 300 * time.Second
	// season is how long one credential is handed out again: all bearers of a process
	// within one stand for the same, so that renewing them writes no further row. It lapses
	// a season after, and a bearer lives far shorter than that.
	season = 45 * 24 * time.Hour
)

// issueToProcess answers messages.IssueInstanceCredential. The order is the point of it:
// the gate, and what the principal may do, are looked at before anything is written, and
// both the root and the credential are durable before a bearer names them.
func (i *issuer) issueToProcess(ctx context.Context, store *ledger.Store, m messages.IssueInstanceCredential) (messages.InstanceCredentialIssued, error) {
	var none messages.InstanceCredentialIssued
	if err := CheckLifetime(m.Lifetime); err != nil {
		return none, err
	}
	issuer := ledger.NewIssuer(store, ledger.Options{})
	gate, err := issuer.Gate(ctx, m.Endpoint, m.Instance, m.Epoch)
	if err != nil {
		return none, err
	}
	if gate.Principal.Owner == names.LocalOwner {
		return none, messages.InstanceForeign.Because("the instances of %s are this service's own", m.Endpoint)
	}
	grant, err := i.granted(ctx, gate.Principal)
	if err != nil {
		return none, err
	}
	root, err := client.Repeat[messages.Enrolled](ctx, i.writer, messages.Enrol{Principal: grant.Principal, UID: grant.UID}, enrolWithin, client.Passes)
	switch {
	case err != nil:
		return none, err
	case root.UID != grant.UID:
		return none, messages.InternalFault.Because("enrolled another incarnation than the one asked for")
	}
	credential := credentialOf(gate, time.Now())
	gate, err = issuer.Issue(ctx, ledger.IssueToInstance{Endpoint: m.Endpoint, Instance: m.Instance, Epoch: m.Epoch, Principal: gate.Principal,
		Credentials: []ledger.InstanceCredential{credential}})
	if err != nil {
		return none, err
	}
	return i.sign(gate, grant, root, credential, m.Lifetime)
}

// CheckLifetime refuses what is no life of a bearer.
func CheckLifetime(life time.Duration) error {
	if life < 0 || life > identity.MaxBearerLife || life%time.Second != 0 {
		return messages.Malformed.Because("a bearer lives 1 to %d seconds", int(identity.MaxBearerLife/time.Second))
	}
	return nil
}

// granted is what a principal may do now, its chain of parents included.
func (i *issuer) granted(ctx context.Context, p messages.Principal) (messages.Grant, error) {
	found, err := client.Repeat[messages.Authority](ctx, i.reader, messages.ReadAuthority{Principal: p}, readWithin, client.Passes)
	switch {
	case err != nil:
		return messages.Grant{}, err
	case !found.HasGrant || found.Grant.State != messages.GrantLive:
		return messages.Grant{}, messages.NotGranted
	}
	return found.Grant, grants.CheckChain(found.Grant, found.Chain)
}

// credentialOf is the credential of the process that is registered at a gate. It follows
// from the gate and the season alone, so that whoever asks again, or at the same time
// elsewhere, asks for the same. A repair leaves the epoch and revokes what was issued; by
// the generation what is issued after it is another one.
func credentialOf(gate messages.Instance, now time.Time) ledger.InstanceCredential {
	nth := now.UnixMilli() / season.Milliseconds()
	return ledger.InstanceCredential{
		ID:     fmt.Sprintf("own-%d-%d-%d", gate.Epoch, gate.Generation, nth),
		Holder: gate.Principal, Endpoint: gate.Endpoint, Instance: gate.Name, Epoch: gate.Epoch,
		State: ledger.CredentialActive, Expires: time.UnixMilli((nth + 2) * season.Milliseconds()).UTC(),
	}
}

func (i *issuer) sign(gate messages.Instance, grant messages.Grant, root messages.Enrolled, c ledger.InstanceCredential,
	life time.Duration) (messages.InstanceCredentialIssued, error) {
	life = min(cmp.Or(life, identity.MaxBearerLife), cmp.Or(i.config.Longest, identity.MaxBearerLife))
	if grant.Kind == messages.Managed {
		life = min(life, machineLife)
	}
	from := time.Now().UTC().Truncate(time.Second)
	bearer := identity.Bearer{
		Principal: grant.Principal, Scope: slices.Clone(grant.Scope), Parent: grant.Parent,
		UID: root.UID, CredentialID: root.CredentialID,
		Process:  identity.Process{Endpoint: c.Endpoint, Instance: c.Instance, Epoch: c.Epoch, CredentialID: c.ID},
		IssuedAt: from, Expires: from.Add(life),
	}
	token, err := i.config.Signer.Sign(bearer)
	if err != nil {
		return messages.InstanceCredentialIssued{}, err
	}
	return messages.InstanceCredentialIssued{Instance: gate, CredentialID: c.ID, Bearer: token, Expires: bearer.Expires}, nil
}
