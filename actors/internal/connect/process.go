package connect

import (
	"time"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

// checkProcess judges which process of an instance a bearer is for: the one that is
// registered, with a credential of its own that stands. Whatever is wrong with it stays
// wrong, since an epoch never comes back and a registration revokes all that was issued
// before it; so each is a fact to be told, also that the gate is frozen.
func checkProcess(b identity.Bearer, p *messages.ProcessRead, now time.Time) error {
	of := b.Process
	if p == nil || of.IsZero() {
		return messages.InternalFault.Because("a process of an instance is judged by its own records, and nobody else is")
	}
	gate := &p.Gate
	switch {
	case !p.HasGate:
		return messages.InstanceNotFound
	case gate.Endpoint != of.Endpoint || gate.Name != of.Instance:
		return messages.InternalFault.Because("the gate read is not that of %s at %s", of.Instance, of.Endpoint)
	case gate.Principal != b.Principal:
		return messages.InstanceForeign
	case gate.Epoch != of.Epoch:
		return messages.InstanceSuperseded
	case gate.State != messages.InstanceOpen:
		return messages.InstanceNotOpen
	}
	return checkIssued(b, p, now)
}

// checkIssued judges the credential that was issued to the process.
func checkIssued(b identity.Bearer, p *messages.ProcessRead, now time.Time) error {
	of, c := b.Process, &p.Credential
	switch {
	case !p.HasCredential, c.ID != of.CredentialID, c.Endpoint != of.Endpoint, c.Instance != of.Instance, c.Epoch != of.Epoch,
		c.Holder != b.Principal, !c.Active:
		return messages.CredentialGone
	case !now.Before(c.Expires):
		return messages.CredentialExpired
	}
	return nil
}
