package ledger

import (
	"context"
	"errors"
	"slices"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// PutGrant grants a principal anew, with a fresh uid: where no grant ever stood, or
// over a revoked one whose incarnation has ended. Refused with messages.GrantStands
// while one is live, IncarnationStanding while the former incarnation is not
// retired, and for a machine with ParentMissing or ScopeExceeded when it would not
// lie inside the whole chain of its parents.
func (w *Writer) PutGrant(ctx context.Context, ask messages.PutGrant) (messages.GrantWritten, error) {
	if err := checkPut(ask); err != nil {
		return messages.GrantWritten{}, err
	}
	grant := messages.Grant{Principal: ask.Principal, Kind: ask.Kind, UID: w.NewUID(), Revision: 1,
		Allowance: copied(ask.Allowance), Parent: ask.Parent, Label: ask.Label, State: messages.GrantLive,
		By: ask.By, At: w.now()}
	var secret messages.Secret
	if ask.Kind == messages.Managed {
		secret = w.NewSecret()
		grant.TokenHash = HashSecret(secret)
	}
	value, err := EncodeGrant(grant, w.NewUID())
	if err != nil {
		return messages.GrantWritten{}, err
	}
	putting := &putting{grant: grant, value: value}
	err = w.transition(ctx, func(ctx context.Context) error { return putting.attempt(ctx, w) })
	if err != nil {
		return messages.GrantWritten{}, err
	}
	return written(grant, secret), nil
}

// putting is one grant across its attempts.
type putting struct {
	grant     messages.Grant
	value     []byte
	overtaken bool
}

// attempt reads the head but does not pin it: a head can come to life again only
// under a live grant, and the grant is pinned.
func (p *putting) attempt(ctx context.Context, w *Writer) error {
	before, err := w.grantOf(ctx, p.grant.Principal)
	switch {
	case err != nil:
		return err
	case before.found && before.UID == p.grant.UID:
		return nil // ours, of an attempt whose answer was lost
	case p.overtaken:
		// Another's grant: it came before ours, or after ours was revoked again.
		return messages.OutcomeUnknown
	case before.live():
		return messages.GrantStands
	}
	head, err := w.headOf(ctx, p.grant.Principal)
	if err != nil {
		return err
	}
	if !head.over() {
		return messages.IncarnationStanding
	}
	batch := Batch{Writes: []Write{Replace(before.row, p.value)}, Witness: before.row.Key}
	if p.grant.Kind == messages.Managed {
		touched, err := w.attenuate(ctx, p.grant)
		if err != nil {
			return err
		}
		batch.Writes = append(batch.Writes, touched...)
	}
	_, err = w.store.Apply(ctx, batch)
	p.overtaken = p.overtaken || errors.Is(err, ErrOvertaken)
	return err
}

// attenuate refuses a machine's grant that exceeds its chain, and returns a touch
// of the parent's grant to go with it. So a parent that is revoked at the same
// moment either refuses the child or finds it among its own.
func (w *Writer) attenuate(ctx context.Context, grant messages.Grant) ([]Write, error) {
	if grant.Parent.IsZero() {
		return nil, nil
	}
	parent, err := w.grantOf(ctx, grant.Parent)
	if err != nil {
		return nil, err
	}
	var chain []messages.Grant
	if parent.found {
		above, err := readChain(ctx, w.store, parent.Grant)
		if err != nil {
			return nil, err
		}
		chain = append([]messages.Grant{parent.Grant}, above...)
	}
	if err := grants.CheckChain(grant, chain); err != nil {
		return nil, err
	}
	return []Write{Touch(parent.row)}, nil
}

// checkPut refuses what could never be granted, before anything is read.
func checkPut(ask messages.PutGrant) error {
	if err := names.CheckPrincipal(ask.Principal); err != nil {
		return err
	}
	if ask.Kind != messages.Interactive && ask.Kind != messages.Managed {
		return messages.Malformed.Because("a grant is %s or %s", messages.Interactive, messages.Managed)
	}
	if !ask.Parent.IsZero() {
		if err := names.CheckPrincipal(ask.Parent); err != nil {
			return err
		}
		if ask.Parent == ask.Principal {
			return messages.Malformed.Because("a principal is not its own parent")
		}
	}
	return checkContent(ask.Allowance, ask.Label, ask.By)
}

func checkContent(allowance messages.Allowance, label, by string) error {
	if by == "" {
		return messages.Malformed.Because("a grant says who writes it")
	}
	if err := checkText("writer's name", by); err != nil {
		return err
	}
	if err := checkText("label", label); err != nil {
		return err
	}
	return grants.CheckAllowance(allowance)
}

// copied is an allowance that shares no list with the asker's.
func copied(a messages.Allowance) messages.Allowance {
	a.Scope, a.Publish, a.Subscribe = slices.Clone(a.Scope), slices.Clone(a.Publish), slices.Clone(a.Subscribe)
	return a
}
