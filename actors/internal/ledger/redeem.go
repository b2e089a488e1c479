package ledger

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// RedeemSession asks for the two credentials of a session.
type RedeemSession struct {
	ID string
	// Principal, UID and Root say who calls, as MintDescendant does.
	Principal messages.Principal
	UID, Root string
	// Endpoint, Instance and Epoch say which process serves.
	Endpoint, Instance string
	Epoch              uint64
	Expires            time.Time
}

// RedeemSession records a session as used, with the credentials of both its sides,
// through the gates of both: once. They end together, when either side's are ended.
//
// Refused with messages.SessionUsed when it was redeemed before, as MintDescendant is
// for the caller, and for the server with messages.InstanceNotFound, InstanceHeld
// while a registration holds its gate, and InstanceSuperseded when another process
// registered; with CredentialConflict when somebody minted what a half would be.
func (w *Writer) RedeemSession(ctx context.Context, ask RedeemSession) (Session, error) {
	if err := checkRedeem(ask, w.now()); err != nil {
		return Session{}, err
	}
	redeeming := &redeeming{ask: ask, witness: w.NewUID()}
	err := w.transition(ctx, func(ctx context.Context) error { return redeeming.attempt(ctx, w) })
	if err != nil {
		return Session{}, err
	}
	return redeeming.session, nil
}

func checkRedeem(ask RedeemSession, now time.Time) error {
	if err := names.CheckPrincipal(ask.Principal); err != nil {
		return err
	}
	if err := names.CheckUID(ask.UID); err != nil {
		return err
	}
	if err := CheckInstance(ask.Endpoint, ask.Instance); err != nil {
		return err
	}
	if !isToken(ask.ID) || len(ask.ID) > maxSession {
		return messages.Malformed.Because("a session is one token of [A-Za-z0-9_-], at most %d", maxSession)
	}
	return checkExpiry(ask.Expires, now)
}

// redeeming is one redemption across its attempts.
type redeeming struct {
	ask     RedeemSession
	witness string
	session Session
}

func (r *redeeming) attempt(ctx context.Context, w *Writer) error {
	if used, err := r.used(ctx, w); err != nil || used {
		return err
	}
	caller, err := w.admit(ctx, r.ask.Principal, r.ask.UID, r.ask.Root)
	if err != nil {
		return err
	}
	server, row, err := r.server(ctx, w)
	if err != nil {
		return err
	}
	r.session = Session{ID: r.ask.ID, Caller: r.ask.Principal, UID: r.ask.UID, Endpoint: r.ask.Endpoint, Instance: r.ask.Instance,
		Epoch: r.ask.Epoch, Server: server.Principal, Expires: instant(millis(r.ask.Expires))}
	writes, err := r.session.writes(r.witness)
	if err != nil {
		return err
	}
	for _, half := range writes[1:] {
		if _, found, err := w.store.Get(ctx, half.Key); err != nil {
			return err
		} else if found {
			return messages.CredentialConflict
		}
	}
	_, err = w.store.Apply(ctx, Batch{Writes: append(writes, Touch(caller.head.row), Touch(row)), Witness: SessionKey(r.ask.ID)})
	return err
}

// used reports whether the session stands as this redemption wrote it, and refuses
// one that anybody else did.
func (r *redeeming) used(ctx context.Context, w *Writer) (bool, error) {
	row, found, err := w.store.Get(ctx, SessionKey(r.ask.ID))
	if err != nil || !found {
		return false, err
	}
	if _, err := DecodeSession(row); err != nil {
		return false, err
	}
	if ours, err := EncodeSession(r.session, r.witness); err == nil && string(ours) == string(row.Value) {
		return true, nil
	}
	return false, messages.SessionUsed
}

// server reads the gate of the instance that is to serve.
func (r *redeeming) server(ctx context.Context, w *Writer) (messages.Instance, Row, error) {
	row, found, err := w.store.Get(ctx, InstanceKey(r.ask.Endpoint, r.ask.Instance))
	if err != nil {
		return messages.Instance{}, row, err
	}
	if !found {
		return messages.Instance{}, row, messages.InstanceNotFound
	}
	instance, err := DecodeInstance(row)
	switch {
	case err != nil:
		return instance, row, err
	case instance.Epoch != r.ask.Epoch:
		return instance, row, messages.InstanceSuperseded
	case instance.State != messages.InstanceOpen:
		return instance, row, messages.InstanceHeld
	}
	return instance, row, nil
}

// writes are the session, and then both its credentials.
func (s Session) writes(witness string) ([]Write, error) {
	record, err := EncodeSession(s, witness)
	if err != nil {
		return nil, err
	}
	caller, err := EncodeCredential(Credential{ID: s.CallerCredential(), Holder: s.Caller, UID: s.UID,
		Chain: []string{chainRoot, chainSession + "." + s.ID}, State: CredentialActive, Expires: s.Expires})
	if err != nil {
		return nil, err
	}
	server, err := EncodeInstanceCredential(InstanceCredential{ID: s.ServerCredential(), Holder: s.Server, Endpoint: s.Endpoint,
		Instance: s.Instance, Epoch: s.Epoch, State: CredentialActive, Expires: s.Expires})
	if err != nil {
		return nil, err
	}
	return []Write{Create(SessionKey(s.ID), record), Create(CredentialKey(s.UID, s.CallerCredential()), caller),
		Create(InstanceCredentialKey(s.Endpoint, s.Instance, s.ServerCredential()), server)}, nil
}
