package messages

import "time"

// HeadState says where the life of a principal's current incarnation stands.
type HeadState string

const (
	// HeadActive lets credentials be issued and used.
	HeadActive HeadState = "active"
	// HeadFrozen stops both while a takeover runs.
	HeadFrozen HeadState = "frozen"
	// HeadRetiring stops both while the incarnation is being ended for good.
	HeadRetiring HeadState = "retiring"
	// HeadRetired marks an incarnation that has ended.
	HeadRetired HeadState = "retired"
)

// OperationRef names the operation that holds a gate shut.
type OperationRef struct {
	ID   string
	Kind string
}

// Root is the one credential from which an incarnation's bearers descend.
type Root struct {
	ID string
	// Expires is when it lapses unless renewed, in whole milliseconds.
	Expires time.Time
}

// Head is the record of a principal: its current incarnation and its gate.
type Head struct {
	Principal Principal
	UID       string
	// Epoch counts takeovers, from 1.
	Epoch uint64
	State HeadState
	// Generation counts the times the gate was opened.
	Generation uint64
	// Operation is set exactly while State is frozen or retiring.
	Operation OperationRef
	// Root is zero until the first exchange, and after a takeover.
	Root Root
}

// ReadAuthority asks the reader for everything a decision about one principal
// needs, as the leader of the authority stream holds it now. Answered by Authority,
// or by Unproved while nothing may be decided.
type ReadAuthority struct {
	Principal Principal
	// Head asks for the head also; a machine's exchange and a connect need it.
	Head bool
}

// Authority answers ReadAuthority. A false Has… is true absence.
type Authority struct {
	HasHead  bool
	Head     Head
	HasGrant bool
	Grant    Grant
	// Chain holds the grants of the parents, nearest first, as far as they exist.
	// It ends early at a missing parent, a cycle or a depth above 32; the
	// attenuation check is what refuses such a chain.
	Chain []Grant
	// Credential is the descendant that a bearer names, where one was read; see
	// ReadCredential.
	HasCredential bool
	Credential    Credential
	// ReadAt is when the reads began, on this process's clock.
	ReadAt time.Time
}

// Credential is what a decision needs to know of a credential that descends from an
// incarnation's root.
type Credential struct {
	ID string
	// Holder is whose connections it stands for.
	Holder Principal
	UID    string
	// Active is false once it was revoked, for good.
	Active  bool
	Expires time.Time
}

// ReadCredential asks the reader for a descendant credential, as ReadAuthority does
// for the rest. Answered by CredentialRead.
type ReadCredential struct{ UID, ID string }

// CredentialRead answers ReadCredential. Found false is true absence.
type CredentialRead struct {
	Found      bool
	Credential Credential
}

// Enrol asks the writer to make sure that a principal's incarnation has a live
// root credential: the first exchange makes it, later ones find or renew it. It is
// answered, by Enrolled, only when the record is durable, so that no bearer names
// a credential that is not there.
type Enrol struct {
	Principal Principal
	// UID is the incarnation of the grant the caller read.
	UID string
}

// Enrolled answers Enrol.
type Enrolled struct {
	UID          string
	CredentialID string
	Expires      time.Time
}
