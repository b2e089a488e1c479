package messages

import "time"

// IssueInstanceCredential asks the issuer for a bearer of one process of a service's
// instance: one of the instance's own principal, that is good only as long as that
// process is the one which is registered. Answered by InstanceCredentialIssued.
//
// Refused with InstanceNotFound, InstanceSuperseded when another process than that of
// the epoch is registered, InstanceNotOpen while a registration holds the gate,
// InstanceForeign for the instances of this service itself, as an exchange of the
// principal's own proof is (NotGranted, ParentMissing, ScopeExceeded, GateShut), with
// CredentialGone when what was issued to this process was revoked since, and with
// Malformed. Asking again changes nothing but the times.
type IssueInstanceCredential struct {
	Endpoint string
	Instance string
	// Epoch is the process that it is for.
	Epoch uint64
	// Lifetime is that of the bearer, 1 s to 900 s, in whole seconds; 0 is the longest.
	// It is cut to what bearers may live in the space.
	Lifetime time.Duration
}

// InstanceCredentialIssued answers IssueInstanceCredential.
type InstanceCredentialIssued struct {
	// Instance is the gate through which it was issued.
	Instance Instance
	// CredentialID names the credential in the ledger that the bearer stands for.
	CredentialID string
	Bearer       Secret
	// Expires is when the bearer lapses, in whole seconds. Asking again before is how it
	// is renewed.
	Expires time.Time
}

// InstanceCredential is what a decision needs to know of a credential that was issued
// to a process of an instance.
type InstanceCredential struct {
	ID string
	// Holder is whose connections it stands for.
	Holder             Principal
	Endpoint, Instance string
	// Epoch is the process that it was issued to.
	Epoch uint64
	// Active is false once it was revoked, for good.
	Active  bool
	Expires time.Time
}

// ReadProcess asks the reader for what a decision about a process of an instance needs
// besides its principal, as the leader holds it now. Answered by ProcessRead, or refused
// as ReadAuthority is.
type ReadProcess struct {
	Endpoint     string
	Instance     string
	CredentialID string
}

// ProcessRead answers ReadProcess. A false Has… is true absence.
type ProcessRead struct {
	HasGate       bool
	Gate          Instance
	HasCredential bool
	Credential    InstanceCredential
}
