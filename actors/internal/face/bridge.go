package face

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Limits of bearers that the bridge asks for.
const (
	// MaxLife is the longest, and the usual, life of a person's bearer.
	MaxLife = 900 * time.Second
	// MaxMachineLife is the longest life of a machine's; a longer wish is cut to it.
	MaxMachineLife = 300 * time.Second
	// enrolWithin bounds the durable step, which a client that hangs up must not
	// tear in half.
	enrolWithin = 10 * time.Second
)

// Bridge turns a proof of identity into a bearer. The order is the point of it:
// all input is checked before the first durable write, the proof before anything
// is read for it, and the credential is durable before a bearer names it.
type Bridge struct {
	// Issuer is the configured issuer of the provider, which owners are derived
	// from; empty when there is none.
	Issuer string
	// Provider verifies people's proofs; nil when there is none.
	Provider Provider
	// OwnerSecret is what owners are derived under.
	OwnerSecret messages.Secret
	Authority   Authority
	Signer      Signer
	// Longest is the longest life of a bearer here, in whole seconds; a longer wish is
	// cut to it. 0 is MaxLife.
	Longest time.Duration
	// Now is the clock of bearers; nil is time.Now.
	Now func() time.Time
}

// Issued is a bearer and what its holder may know of it.
type Issued struct {
	Token   messages.Secret
	Owner   string
	Scope   []string
	Expires time.Time
	// Life is how long it is valid, from when it was signed.
	Life time.Duration
}

// OwnerOf names the owner that a subject of the configured provider is.
func (b *Bridge) OwnerOf(subject string) (string, error) {
	if b.Issuer == "" {
		return "", messages.ProviderAbsent
	}
	return identity.Owner(b.OwnerSecret, b.Issuer, subject)
}

// Person exchanges a provider's token for a bearer of one of its subject's actors.
// A refusal that comes after the proof was verified names the owner all the same.
// A ttl of zero is the longest. ctx is the client's; life ends when everything must,
// and is all that stops a durable step which has begun.
func (b *Bridge) Person(ctx, life context.Context, idToken, actor string, ttl time.Duration) (Issued, error) {
	if err := names.CheckActor(actor); err != nil {
		return Issued{}, err
	}
	if err := checkTTL(ttl); err != nil {
		return Issued{}, err
	}
	if b.Provider == nil {
		return Issued{}, messages.ProviderAbsent
	}
	proof, err := b.Provider.Verify(ctx, idToken)
	if err != nil {
		return Issued{}, err
	}
	owner, err := b.OwnerOf(proof.Subject)
	if err != nil {
		return Issued{}, err
	}
	principal, proved := messages.Principal{Owner: owner, Actor: actor}, Issued{Owner: owner}
	found, err := b.Authority.Read(ctx, messages.ReadAuthority{Principal: principal})
	if err != nil {
		return proved, err
	}
	if err := checkPerson(found); err != nil {
		return proved, err
	}
	return b.issue(ctx, life, found.Grant, ttl, proof.Expires)
}

// Machine exchanges a machine's secret for a bearer. Whatever is wrong with the
// proof (no such principal, one that is no machine, another secret) gets the same
// refusal after the same comparison, so that nothing is told to who tries. ttl, ctx
// and life are as for Person.
func (b *Bridge) Machine(ctx, life context.Context, principal messages.Principal, secret messages.Secret, ttl time.Duration) (Issued, error) {
	if err := names.CheckPrincipal(principal); err != nil {
		return Issued{}, err
	}
	if err := checkTTL(ttl); err != nil {
		return Issued{}, err
	}
	found, err := b.Authority.Read(ctx, messages.ReadAuthority{Principal: principal})
	if err != nil {
		return Issued{}, err
	}
	hash := ""
	if found.HasGrant && found.Grant.Kind == messages.Managed {
		hash = found.Grant.TokenHash
	}
	if !identity.CheckActorToken(hash, secret.Reveal()) {
		return Issued{}, messages.ProofInvalid
	}
	if found.Grant.State != messages.GrantLive {
		return Issued{}, messages.NotGranted
	}
	if err := grants.CheckChain(found.Grant, found.Chain); err != nil {
		return Issued{}, err
	}
	return b.issue(ctx, life, found.Grant, min(orLongest(ttl), MaxMachineLife), time.Time{})
}

// checkPerson refuses a principal that a provider's proof is no way into.
func checkPerson(found messages.Authority) error {
	switch {
	case !found.HasGrant || found.Grant.State != messages.GrantLive:
		return messages.NotGranted
	case found.Grant.Kind != messages.Interactive:
		return messages.GrantKindMismatch
	}
	return grants.CheckChain(found.Grant, found.Chain)
}

func checkTTL(ttl time.Duration) error {
	if ttl < 0 || ttl > MaxLife || ttl%time.Second != 0 {
		return messages.Malformed.Because("a bearer lives 1 to %d seconds", int(MaxLife/time.Second))
	}
	return nil
}

func orLongest(ttl time.Duration) time.Duration {
	if ttl == 0 {
		return MaxLife
	}
	return ttl
}

// issue makes sure of the root credential, and then signs. A proof that lapses is
// refused before anything is written, and a bearer never outlives its proof.
func (b *Bridge) issue(ctx, life context.Context, grant messages.Grant, ttl time.Duration, proofEnds time.Time) (Issued, error) {
	if b.Longest > 0 {
		ttl = min(orLongest(ttl), b.Longest)
	}
	if _, err := b.window(ttl, proofEnds); err != nil {
		return Issued{}, err
	}
	if err := ctx.Err(); err != nil {
		return Issued{}, err
	}
	enrolled, err := b.enrol(ctx, life, grant)
	if err != nil {
		return Issued{}, err
	}
	w, err := b.window(ttl, proofEnds)
	if err != nil {
		return Issued{}, err
	}
	token, err := b.Signer.Sign(identity.Bearer{
		Principal: grant.Principal, Scope: slices.Clone(grant.Scope), Parent: grant.Parent,
		UID: grant.UID, CredentialID: enrolled.CredentialID, IssuedAt: w.from, Expires: w.to,
	})
	if err != nil {
		return Issued{}, err
	}
	return Issued{Token: token, Owner: grant.Principal.Owner, Scope: grant.Scope, Expires: w.to, Life: w.to.Sub(w.from)}, nil
}

// enrol goes on when the client has hung up, and ends with the face.
func (b *Bridge) enrol(ctx, life context.Context, grant messages.Grant) (messages.Enrolled, error) {
	durable, cancel := context.WithTimeout(context.WithoutCancel(ctx), enrolWithin)
	defer cancel()
	defer context.AfterFunc(life, cancel)()
	enrolled, err := b.Authority.Enrol(durable, messages.Enrol{Principal: grant.Principal, UID: grant.UID})
	if err != nil {
		return messages.Enrolled{}, err
	}
	if enrolled.UID != grant.UID || enrolled.CredentialID == "" {
		return messages.Enrolled{}, messages.InternalFault.From(errors.New("enrolled another incarnation than the one asked for"))
	}
	return enrolled, nil
}

// window is when a bearer signed now is valid, in whole seconds.
type window struct{ from, to time.Time }

func (b *Bridge) window(ttl time.Duration, proofEnds time.Time) (window, error) {
	now := time.Now
	if b.Now != nil {
		now = b.Now
	}
	from := now().UTC().Truncate(time.Second)
	to := from.Add(orLongest(ttl))
	if ends := proofEnds.UTC().Truncate(time.Second); !proofEnds.IsZero() && ends.Before(to) {
		to = ends
	}
	if !to.After(from) {
		return window{}, messages.ProofExpired
	}
	return window{from: from, to: to}, nil
}
