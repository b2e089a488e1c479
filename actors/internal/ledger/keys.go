package ledger

import "github.com/cotal-ai/authplane/messages"

// Families of rows: the first token of a key. Families are told apart by this
// token alone, never by how many tokens follow.
const (
	familyHead       = "head"
	familyUID        = "uid"
	familyGrant      = "grant"
	familyCredential = "cred"
	familyLineage    = "bysrc"
	familySource     = "srcgate"
	familySession    = "session"
	familyAsked      = "asked"
	familyBeat       = "beat"

	// RosterKey is the one row of the servers ever seen.
	RosterKey = "roster"
)

// HeadKey is where a principal's head stands.
func HeadKey(p messages.Principal) string { return familyHead + "." + p.String() }

// UIDKey is where an incarnation's name is reserved, for ever.
func UIDKey(uid string) string { return familyUID + "." + uid }

// GrantKey is where a principal's grant stands.
func GrantKey(p messages.Principal) string { return familyGrant + "." + p.String() }

// CredentialKey is where a descendant credential of an incarnation stands.
func CredentialKey(uid, credentialID string) string {
	return familyCredential + "." + uid + "." + credentialID
}

// LineageKey is where it stands that a credential was derived from a handle.
func LineageKey(h Handle, uid, credentialID string) string {
	return familyLineage + "." + h.Issuer + "." + h.ID + "." + uid + "." + credentialID
}

// SourceKey is where the gate of a signed handle stands.
func SourceKey(h Handle) string { return familySource + "." + h.Issuer + "." + h.ID }

// SessionKey is where it stands that a session was redeemed.
func SessionKey(id string) string { return familySession + "." + id }

// AskedKey is where a process writes the retirements it asks for.
func AskedKey(instance string) string { return familyAsked + "." + instance }

// BeatKey is where a process proves that its connection reaches a quorum.
func BeatKey(instance string) string { return familyBeat + "." + instance }

// Filters for List.
const (
	allGrants = familyGrant + ".>"
	allRows   = ">"
)

// grantsOf lists the grants of one owner's principals. A managed grant has the
// owner of its parent, so it holds everybody under any of them.
func grantsOf(owner string) string { return familyGrant + "." + owner + ".*" }
