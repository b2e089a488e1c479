package ledger

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// maxHandles is the longest chain of handles.
const maxHandles = 32

// MintDescendant asks for a credential derived from an incarnation's root.
type MintDescendant struct {
	Principal messages.Principal
	UID       string
	// Root is the root credential that was shown for it. A takeover ends it, so what was
	// asked for before one is refused after.
	Root string
	// ID names the credential. Whoever asks chooses it, so that he may ask again.
	ID string
	// Endpoint is set for the credentials of a service.
	Endpoint string
	// Handles are all signed handles of the chain that was presented, nearest last.
	Handles []Handle
	Expires time.Time
}

// MintDescendant records a credential, with where it comes from, through every gate
// on its way: once it answers, whoever shuts one of them finds the credential among
// those to revoke. Only then may anything secret be released. Asking for the same
// again finds it.
//
// Refused with messages.NotGranted without a live grant, IncarnationEnded when the
// incarnation is not the one that stands, GateShut while an operation holds it,
// HandleFrozen when one of the handles was revoked, CredentialGone when the root is
// not the current one or the credential was revoked since, CredentialExpired when the
// root has lapsed, and CredentialConflict when the id names another credential.
func (w *Writer) MintDescendant(ctx context.Context, ask MintDescendant) (Credential, error) {
	if err := checkMint(ask, w.now()); err != nil {
		return Credential{}, err
	}
	minting := &minting{ask: ask, handles: distinct(ask.Handles), credential: Credential{ID: ask.ID, Holder: ask.Principal, UID: ask.UID,
		Endpoint: ask.Endpoint, Chain: []string{chainRoot}, State: CredentialActive, Expires: instant(millis(ask.Expires))}}
	for _, h := range minting.handles {
		minting.credential.Chain = append(minting.credential.Chain, h.String())
	}
	err := w.transition(ctx, func(ctx context.Context) error { return minting.attempt(ctx, w) })
	if err != nil {
		return Credential{}, err
	}
	return minting.credential, nil
}

func checkMint(ask MintDescendant, now time.Time) error {
	if err := names.CheckPrincipal(ask.Principal); err != nil {
		return err
	}
	if err := names.CheckUID(ask.UID); err != nil {
		return err
	}
	switch {
	case !isToken(ask.ID), ask.Endpoint != "" && !isToken(ask.Endpoint):
		return messages.Malformed.Because("a credential and an endpoint are one token of [A-Za-z0-9_-] each")
	case len(ask.Handles) > maxHandles:
		return messages.Malformed.Because("a chain has at most %d handles", maxHandles)
	case slices.ContainsFunc(ask.Handles, func(h Handle) bool { return !h.isWhole() }):
		return messages.Malformed.Because("a handle is two tokens of [A-Za-z0-9_-]")
	}
	return checkExpiry(ask.Expires, now)
}

func checkExpiry(expires, now time.Time) error {
	if !expires.After(now) || !isInstant(millis(expires)) {
		return messages.Malformed.Because("a credential expires later than now")
	}
	return nil
}

// distinct is handles without repetitions, in their order.
func distinct(handles []Handle) []Handle {
	var each []Handle
	for _, h := range handles {
		if !slices.Contains(each, h) {
			each = append(each, h)
		}
	}
	return each
}

// minting is one credential across its attempts.
type minting struct {
	ask        MintDescendant
	handles    []Handle
	credential Credential
}

func (m *minting) attempt(ctx context.Context, w *Writer) error {
	gate, err := w.admit(ctx, m.ask.Principal, m.ask.UID, m.ask.Root)
	if err != nil {
		return err
	}
	sources, err := m.sources(ctx, w)
	if err != nil {
		return err
	}
	minted, err := m.minted(ctx, w)
	if err != nil || minted {
		return err
	}
	value, err := EncodeCredential(m.credential)
	if err != nil {
		return err
	}
	writes := []Write{Create(CredentialKey(m.ask.UID, m.ask.ID), value), Touch(gate.head.row), Touch(gate.grant.row)}
	_, err = w.store.Apply(ctx, Batch{Writes: append(writes, sources...)})
	return err
}

// sources are the lineage of the credential, and every gate on it touched; the gate
// of a handle that is used for the first time is made.
func (m *minting) sources(ctx context.Context, w *Writer) ([]Write, error) {
	var writes []Write
	for _, h := range m.handles {
		gate, err := sourceAt(ctx, w.store, h)
		if err != nil {
			return nil, err
		}
		if gate.State == SourceFrozen {
			return nil, messages.HandleFrozen
		}
		open, err := EncodeSource(gate.SourceGate)
		if err != nil {
			return nil, err
		}
		lineage, err := EncodeLineage(Lineage{Handle: h, UID: m.ask.UID, CredentialID: m.ask.ID})
		if err != nil {
			return nil, err
		}
		writes = append(writes, Create(LineageKey(h, m.ask.UID, m.ask.ID), lineage), Replace(gate.row, open))
	}
	return writes, nil
}

// minted reports whether the very same was minted before, and refuses what was
// revoked since or is another's.
func (m *minting) minted(ctx context.Context, w *Writer) (bool, error) {
	row, found, err := w.store.Get(ctx, CredentialKey(m.ask.UID, m.ask.ID))
	if err != nil || !found {
		return false, err
	}
	stands, err := DecodeCredential(row)
	if err != nil {
		return false, err
	}
	same := m.credential
	same.State = stands.State
	value, err := EncodeCredential(same)
	switch {
	case err != nil:
		return false, err
	case !bytes.Equal(value, row.Value):
		return false, messages.CredentialConflict
	case stands.State != CredentialActive:
		return false, messages.CredentialGone
	}
	return true, nil
}

// admitted is the gate of an incarnation through which something may be issued.
type admitted struct {
	grant standing
	head  life
}

// admit refuses what may not be derived from a root now. Whoever writes on the
// strength of it touches the head, and so loses to everything that shuts the gate;
// whoever touches the grant too loses to a revocation at once.
func (w *Writer) admit(ctx context.Context, p messages.Principal, uid, root string) (admitted, error) {
	var a admitted
	var err error
	if a.grant, err = w.grantOf(ctx, p); err != nil {
		return a, err
	}
	if a.head, err = w.headOf(ctx, p); err != nil {
		return a, err
	}
	switch {
	case !a.grant.live():
		return a, messages.NotGranted
	case a.grant.UID != uid, !a.head.found, a.head.UID != uid, a.head.State == messages.HeadRetired:
		return a, messages.IncarnationEnded
	case a.head.State != messages.HeadActive:
		return a, messages.GateShut
	case a.head.Root.ID == "", a.head.Root.ID != root:
		return a, messages.CredentialGone
	case !a.head.Root.Expires.After(w.now()):
		return a, messages.CredentialExpired
	}
	return a, nil
}

// RevokeCredential asks for the end of one credential.
type RevokeCredential struct{ UID, ID string }

// RevokeCredential ends one credential for good; ending it again changes nothing.
// Refused with messages.CredentialGone when it was never issued.
func (w *Writer) RevokeCredential(ctx context.Context, ask RevokeCredential) error {
	if err := names.CheckUID(ask.UID); err != nil {
		return err
	}
	if !isToken(ask.ID) {
		return messages.Malformed.Because("a credential is one token of [A-Za-z0-9_-]")
	}
	return w.transition(ctx, func(ctx context.Context) error {
		row, found, err := w.store.Get(ctx, CredentialKey(ask.UID, ask.ID))
		if err != nil {
			return err
		}
		if !found {
			return messages.CredentialGone
		}
		c, err := DecodeCredential(row)
		if err != nil || c.State == CredentialRevoked {
			return err
		}
		c.State = CredentialRevoked
		value, err := EncodeCredential(c)
		if err != nil {
			return err
		}
		_, err = w.store.Apply(ctx, Batch{Writes: []Write{Replace(row, value)}, Witness: row.Key})
		return err
	})
}
