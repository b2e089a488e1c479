package ledger

import (
	"context"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Credential reads a credential that descends from an incarnation's root, as the
// leader holds it. A failed read fails as Authority does.
func (r *Reader) Credential(ctx context.Context, ask messages.ReadCredential) (messages.CredentialRead, error) {
	if err := names.CheckUID(ask.UID); err != nil {
		return messages.CredentialRead{}, err
	}
	if !isToken(ask.ID) {
		return messages.CredentialRead{}, messages.Malformed.Because("a credential is one token of [A-Za-z0-9_-]")
	}
	row, found, err := r.source.Get(ctx, CredentialKey(ask.UID, ask.ID))
	if err != nil || !found {
		return messages.CredentialRead{}, err
	}
	c, err := DecodeCredential(row)
	if err != nil {
		return messages.CredentialRead{}, err
	}
	return messages.CredentialRead{Found: true, Credential: messages.Credential{
		ID: c.ID, Holder: c.Holder, UID: c.UID, Active: c.State == CredentialActive, Expires: c.Expires,
	}}, nil
}
