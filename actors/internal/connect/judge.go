package connect

import (
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Admission is a connect that was decided for: what the user is to be minted with.
type Admission struct {
	Principal messages.Principal
	UID       string
	// Profile is the name of the profile the permissions come from.
	Profile     string
	Permissions jwt.Permissions
	// Expires ends the connection: the earliest of what the bearer, the credential
	// and the profile allow, in whole seconds.
	Expires time.Time
}

// Judge decides about verified bearers.
type Judge struct {
	profiles *Profiles
	// longest is what no connection outlives, from its admission; zero for no bound but
	// those of its bearer, credential and profile.
	longest time.Duration
}

// NewJudge makes a judge that admits under these profiles.
func NewJudge(profiles *Profiles) *Judge { return &Judge{profiles: profiles} }

// NewBoundedJudge makes a judge that admits for no longer than longest, in whole
// seconds, whatever the bearer says.
func NewBoundedJudge(profiles *Profiles, longest time.Duration) *Judge {
	return &Judge{profiles: profiles, longest: longest}
}

// Decide judges a bearer, which the caller has verified, by what the authority
// holds. It reads nothing else: equal arguments have equal outcomes.
//
// The order is head, credential, grant, chain of parents, permissions, and the
// error is the entry of the catalogue for the first that does not hold; KindOf says
// whether it is answered. A bearer of a process of an instance is for DecideProcess.
func (j *Judge) Decide(b identity.Bearer, a messages.Authority, now time.Time) (Admission, error) {
	return j.decide(b, a, nil, now)
}

// DecideProcess is Decide for a bearer of a process of an instance, by what the
// authority holds of that process too, which is judged after the chain of parents.
func (j *Judge) DecideProcess(b identity.Bearer, a messages.Authority, p messages.ProcessRead, now time.Time) (Admission, error) {
	return j.decide(b, a, &p, now)
}

func (j *Judge) decide(b identity.Bearer, a messages.Authority, process *messages.ProcessRead, now time.Time) (Admission, error) {
	if err := checkNames(b, a); err != nil {
		return Admission{}, err
	}
	if err := checkHead(b, a, now); err != nil {
		return Admission{}, err
	}
	if err := checkGrant(b, a); err != nil {
		return Admission{}, err
	}
	if err := grants.CheckChain(a.Grant, a.Chain); err != nil {
		return Admission{}, err
	}
	ends := credentialEnd(b, a)
	if process != nil || !b.Process.IsZero() {
		if err := checkProcess(b, process, now); err != nil {
			return Admission{}, err
		}
		ends = earlier(ends, process.Credential.Expires)
	}
	name, p, err := j.profiles.pick(b, a.Grant)
	if err != nil {
		return Admission{}, err
	}
	of := subjectOf{principal: b.Principal, uid: b.UID, endpoint: b.Process.Endpoint}
	permissions, err := p.permissions(of, a.Grant.Allowance, j.profiles.besides(a.Grant.Kind))
	if err != nil {
		return Admission{}, err
	}
	expires, err := j.expiry(p, b, ends, now)
	if err != nil {
		return Admission{}, err
	}
	return Admission{Principal: b.Principal, UID: b.UID, Profile: name, Permissions: permissions, Expires: expires}, nil
}

// checkNames refuses what could never stand in a subject, and records that are not
// the bearer's. Neither happens unless something else here is broken.
func checkNames(b identity.Bearer, a messages.Authority) error {
	if err := names.CheckPrincipal(b.Principal); err != nil {
		return messages.InternalFault.From(err)
	}
	if err := names.CheckUID(b.UID); err != nil {
		return messages.InternalFault.From(err)
	}
	if a.HasHead && a.Head.Principal != b.Principal || a.HasGrant && a.Grant.Principal != b.Principal {
		return messages.InternalFault.Because("the records read are not those of %s", b.Principal)
	}
	return nil
}

func checkHead(b identity.Bearer, a messages.Authority, now time.Time) error {
	head := &a.Head
	switch {
	case !a.HasHead && !a.HasGrant:
		return messages.NotGranted
	case !a.HasHead:
		return messages.CredentialGone.Because("nothing was ever issued to %s", b.Principal)
	case head.UID != b.UID, head.State == messages.HeadRetired:
		return messages.IncarnationEnded
	case head.State != messages.HeadActive:
		return messages.GateShut
	case head.Root.ID == "":
		return messages.CredentialGone
	case head.Root.ID != b.CredentialID:
		return checkDescendant(b, a, now)
	case !now.Before(head.Root.Expires):
		return messages.CredentialExpired
	}
	return nil
}

// Descends reports whether a bearer names another credential than the root of the
// incarnation that stands, so that Decide needs its record too.
func Descends(b identity.Bearer, a messages.Authority) bool {
	head := &a.Head
	return a.HasHead && head.State == messages.HeadActive && head.UID == b.UID && head.Root.ID != "" && head.Root.ID != b.CredentialID
}

// checkDescendant judges a credential by its own record: it may live on for longer than
// the root from which it was derived, and no longer than it says itself.
func checkDescendant(b identity.Bearer, a messages.Authority, now time.Time) error {
	c := &a.Credential
	switch {
	case !a.HasCredential, c.ID != b.CredentialID, c.UID != b.UID, c.Holder != b.Principal, !c.Active:
		return messages.CredentialGone
	case !now.Before(c.Expires):
		return messages.CredentialExpired
	}
	return nil
}

func checkGrant(b identity.Bearer, a messages.Authority) error {
	grant := &a.Grant
	switch {
	case !a.HasGrant || grant.State != messages.GrantLive:
		return messages.NotGranted
	case grant.UID != b.UID:
		return messages.IncarnationEnded
	case grant.Kind != messages.Interactive && grant.Kind != messages.Managed:
		return messages.GrantKindMismatch
	case !b.Parent.IsZero() && b.Parent != grant.Parent:
		return messages.ParentMissing.Because("the bearer names another parent than the grant")
	}
	return grants.CheckScopeWithin(b.Scope, grant.Scope)
}

// pick finds the profile a connect is under. A bearer that asks for none gets its
// grant's role. It may ask for another one if the grant's scope holds
// `role:<profile>`, or if the profile requires a scope: then having that is enough.
// Whatever a profile requires must be in the scope of the bearer.
func (all *Profiles) pick(b identity.Bearer, g messages.Grant) (string, *profile, error) {
	role := grants.RoleOf(g.Allowance)
	name := role
	if b.Profile != "" {
		name = b.Profile
	}
	p := all.byName[name]
	switch {
	case p == nil:
		return "", nil, messages.ProfileUnknown.Because("%s", name)
	case name != role && len(p.requires) == 0 && grants.CheckScopeWithin([]string{"role:" + name}, g.Scope) != nil:
		return "", nil, messages.ScopeExceeded.Because("profile %s", name)
	}
	if err := grants.CheckScopeWithin(p.requires, b.Scope); err != nil {
		return "", nil, err
	}
	return name, p, nil
}

// credentialEnd is when the credential that the bearer names lapses.
func credentialEnd(b identity.Bearer, a messages.Authority) time.Time {
	if Descends(b, a) {
		return a.Credential.Expires
	}
	return a.Head.Root.Expires
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// expiry is when the connection ends at the latest.
func (j *Judge) expiry(p *profile, b identity.Bearer, credential time.Time, now time.Time) (time.Time, error) {
	expires := earlier(b.Expires, credential)
	for _, life := range []time.Duration{p.maxLife, j.longest} {
		if longest := now.Add(life); life > 0 && longest.Before(expires) {
			expires = longest
		}
	}
	expires = expires.Truncate(time.Second)
	if !now.Before(expires) {
		return time.Time{}, messages.ProofExpired
	}
	return expires, nil
}
