package run

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
)

// Desk decides about runs. It is safe for concurrent use.
type Desk struct {
	Space string
	// Records is where runs stand.
	Records      *ledger.Store
	Authority    Authority
	Receipts     Receipts
	Certificates *Certificates
	// Observed is nil where nobody observes.
	Observed Observed
	// Replicas is how many the journals have: with several, a server that was cut off may
	// answer with less than there is.
	Replicas int
	Now      func() time.Time
}

// asked is a request that was forwarded, as far as it can be judged offline.
type asked struct {
	subject runrequest.Subject
	body    runrequest.Body
	// id names the request and no other.
	id      string
	await   messages.AwaitRequest
	witness string
	// expires is when the certificate runs out.
	expires time.Time
}

// RequestID names a request and no other.
func RequestID(space string, r messages.RunRequest) string {
	sum := sha256.Sum256(runrequest.Statement(space, r.Subject, r.Payload))
	return hex.EncodeToString(sum[:])
}

// read judges a request offline: that it is one, of this command, for this controller,
// and signed by whom its subject names, if it is signed at all.
func (d *Desk) read(command string, who messages.RunController, r messages.RunRequest) (*asked, error) {
	subject, err := runrequest.ParseSubject(r.Subject)
	if err != nil {
		return nil, err
	}
	body, err := runrequest.ParseBody(r.Payload)
	if err != nil {
		return nil, err
	}
	if err := names.CheckPrincipal(subject.Caller); err != nil {
		return nil, err
	}
	a := &asked{subject: subject, body: body, id: RequestID(d.Space, r), witness: messages.WitnessObservation,
		await: messages.AwaitRequest{Subject: r.Subject, Digest: runrequest.Digest(r.Payload)}}
	switch {
	case subject.Endpoint != who.Endpoint, subject.Command != command, subject.Instance != who.Instance && subject.Instance != runrequest.Any:
		return nil, messages.RunExceeded.Because("the request is for another service, instance or command")
	case body.Bound && (body.Instance != who.Instance || body.Epoch != who.Epoch):
		return nil, messages.RunExceeded.Because("the request is for another process")
	case who.Principal.Owner != names.LocalOwner && who.Principal.Owner != subject.Caller.Owner:
		return nil, messages.RunExceeded.Because("the caller is of another owner than the controller")
	}
	if r.Certificate == "" && r.Signature == "" {
		return a, nil
	}
	return a, d.verify(a, r)
}

// verify makes sure that the caller whom the subject names signed the request.
func (d *Desk) verify(a *asked, r messages.RunRequest) error {
	caller, err := d.Certificates.Verify(r.Certificate)
	if err != nil {
		return err
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(r.Signature)
	if err != nil {
		return messages.RunUnwitnessed.Because("the signature is none")
	}
	key, err := nkeys.FromPublicKey(caller.Key)
	if err != nil || key.Verify(runrequest.Statement(d.Space, r.Subject, r.Payload), signature) != nil {
		return messages.RunUnwitnessed.Because("the signature does not hold")
	}
	if caller.Principal != a.subject.Caller || caller.UID != a.subject.UID {
		return messages.RunUnwitnessed.Because("it is signed by somebody else than its subject names")
	}
	a.witness, a.expires = messages.WitnessSignature, caller.Expires
	return nil
}

// confirm judges what changes: whether the witness counts now, and whether the caller
// may ask it now. It answers his grant.
func (d *Desk) confirm(ctx context.Context, a *asked) (messages.Grant, error) {
	grant, err := d.live(ctx, a.subject.Caller, a.subject.UID)
	if err != nil {
		return messages.Grant{}, err
	}
	subject := a.subject.String()
	if !slices.ContainsFunc(grant.Publish, func(pattern string) bool { return grants.Covers(pattern, subject) }) {
		return messages.Grant{}, messages.RunExceeded
	}
	switch {
	case a.witness == messages.WitnessSignature && !d.Now().Before(a.expires):
		return messages.Grant{}, messages.RunUnwitnessed.Because("the certificate has run out")
	case a.witness == messages.WitnessSignature:
		return grant, nil
	case d.Observed == nil:
		return messages.Grant{}, messages.ObserverOff
	}
	return grant, d.Observed.Await(ctx, a.await)
}

// live reads the grant of somebody whose incarnation is the current one.
func (d *Desk) live(ctx context.Context, p messages.Principal, uid string) (messages.Grant, error) {
	now, err := d.Authority.Authority(ctx, messages.ReadAuthority{Principal: p, Head: true})
	switch {
	case err != nil:
		return messages.Grant{}, err
	case !now.HasGrant || now.Grant.State != messages.GrantLive:
		return messages.Grant{}, messages.NotGranted
	case now.Grant.UID != uid, !now.HasHead, now.Head.UID != uid, now.Head.State == messages.HeadRetired:
		return messages.Grant{}, messages.IncarnationEnded
	case now.Head.State != messages.HeadActive:
		return messages.Grant{}, messages.GateShut
	}
	return now.Grant, grants.CheckChain(now.Grant, now.Chain)
}
