package messages

import "time"

// GrantKind says who exchanges a proof for a bearer under a grant.
type GrantKind string

const (
	// Interactive grants belong to people: the proof comes from the identity provider.
	Interactive GrantKind = "interactive"
	// Managed grants belong to machines: the proof is a secret shown once, and what
	// they may do lies inside the whole chain of their parents.
	Managed GrantKind = "managed"
)

// GrantState says whether a grant admits anybody.
type GrantState string

const (
	// GrantLive admits its principal.
	GrantLive GrantState = "live"
	// GrantRevoked admits nobody, and stays as the record that it once did.
	GrantRevoked GrantState = "revoked"
)

// Allowance is what a principal may do. An empty list means nothing, never
// everything.
type Allowance struct {
	// Scope lists capabilities, each [A-Za-z0-9_:-]{1,64}.
	Scope []string
	// Publish and Subscribe list NATS subject patterns.
	Publish   []string
	Subscribe []string
	// Serve permits replying to requests.
	Serve bool
	// Role names a permission profile; empty is the default one, and so far the only
	// one that a service has.
	Role string
}

// Grant is what is recorded about what one principal may do.
type Grant struct {
	Principal Principal
	Kind      GrantKind
	// UID names the incarnation the grant is for.
	UID string
	// Revision counts the edits of this incarnation's grant, from 1.
	Revision uint64
	Allowance
	// Parent is the principal whose grant bounds this one; the zero value for none.
	Parent Principal
	// Label is free text for listings. It is never derived from the provider's subject.
	Label string
	// TokenHash is the hex SHA-256 of a machine's secret; empty for interactive grants.
	TokenHash string
	State     GrantState
	// By says who wrote the grant last.
	By string
	// At is when it was written last, in whole milliseconds.
	At time.Time
}

// PutGrant asks the writer to create the grant of a principal that has none, or
// whose grant was revoked and whose incarnation has ended. Answered by GrantWritten.
// Refused with GrantStands while one is live.
type PutGrant struct {
	Principal Principal
	Kind      GrantKind
	Allowance Allowance
	Parent    Principal
	Label     string
	By        string
}

// EditGrant asks the writer to replace what a live grant allows, keeping its
// incarnation. Refused with GrantMoved unless Revision is the current one.
type EditGrant struct {
	Principal Principal
	Revision  uint64
	Allowance Allowance
	Label     string
	// RotateSecret makes a new machine secret; the former stops working at once.
	RotateSecret bool
	By           string
}

// RevokeGrant asks the writer to end a principal's grant, and those of the machines
// below it: no new bearer and no new connect from the moment it is answered. A
// connection that stands is cut by the retirement that it asks for.
type RevokeGrant struct {
	Principal Principal
	By        string
}

// GrantWritten answers PutGrant, EditGrant and RevokeGrant once the change is durable.
type GrantWritten struct {
	Principal Principal
	UID       string
	Revision  uint64
	// ActorToken is the machine's secret, handed out once, when one was made.
	ActorToken Secret
	// Operation is the id of the retirement that a revocation asked for; empty when
	// there is nothing to end.
	Operation string
}

// ListGrants asks the reader for every grant. Answered by Grants.
type ListGrants struct{}

// Grants answers ListGrants.
type Grants struct {
	// Items are the grants that can be read, sorted by owner, then actor.
	Items []Grant
	// Unreadable are the keys, sorted, of the rows that cannot be read. Whoever they
	// are about is denied.
	Unreadable []string
}
