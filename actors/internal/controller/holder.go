package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Holder is who asks at a door. It is made by whoever has checked his proof, never from
// a request. A hosting platform is another Holder than a person is.
type Holder interface {
	// Who is on whose behalf it is asked; his owner owns the instance.
	Who() messages.Principal
	// Admit refuses him unless he may run controllers now. It is asked before anything is
	// written, and once more before anything is signed.
	Admit(ctx context.Context, now ledger.Source) error
}

// Person is a Holder: somebody with a grant of his own and the scope supervise.
type Person messages.ControllerPerson

// Who is Holder.
func (p Person) Who() messages.Principal { return p.Principal }

// Admit is Holder. What it goes by is what the ledger holds now.
func (p Person) Admit(ctx context.Context, now ledger.Source) error {
	found, err := ledger.NewReader(now, nil).Authority(ctx, messages.ReadAuthority{Principal: p.Principal, Head: true})
	if err == nil {
		err = p.judge(found)
	}
	if err != nil {
		return fmt.Errorf("admit %s: %w", p.Principal, err)
	}
	return nil
}

func (p Person) judge(found messages.Authority) error {
	grant, head := found.Grant, found.Head
	switch {
	case !found.HasGrant || grant.State != messages.GrantLive:
		return messages.NotGranted
	case grant.Kind != messages.Interactive:
		return messages.GrantKindMismatch
	case p.UID != "" && (p.UID != grant.UID || !found.HasHead || head.UID != p.UID):
		return messages.IncarnationEnded
	case found.HasHead && head.UID == grant.UID && head.State != messages.HeadActive:
		return messages.GateShut
	case p.UID != "" && head.Root.ID != p.Credential:
		return messages.CredentialGone
	case !slices.Contains(grant.Scope, Scope), p.UID != "" && !slices.Contains(p.Scope, Scope):
		return messages.SuperviseMissing
	}
	return grants.CheckChain(grant, found.Chain)
}
