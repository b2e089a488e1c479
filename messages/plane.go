package messages

import "time"

// ClaimState says whether a claim on the plane stands.
type ClaimState string

const (
	// ClaimHeld names the process that runs the plane, or ran it when it died.
	ClaimHeld ClaimState = "held"
	// ClaimFree is a claim that its holder gave back.
	ClaimFree ClaimState = "released"
)

// Claim is the record of which process runs the plane of a space.
type Claim struct {
	// Generation counts the claims of a space, from 1.
	Generation uint64
	// ID names this claim and no other.
	ID    string
	State ClaimState
	// Ledger and Records are the connections of the holder's two scanners.
	Ledger, Records ConnectionTuple
	// OpenedAt is the holder's clock in whole milliseconds; nothing is decided by it.
	OpenedAt time.Time
	// Host tells an operator where the holder runs; nothing is decided by it.
	Host string
}

// Awaited says what a process that does not hold the plane waits for.
type Awaited struct {
	// Reason is the refusal it met last, or the failure that kept it from asking.
	Reason Error
	// Text says so to an operator; Next is the command that leads on.
	Text string
	Next string
	// Holder is the claim that stands in the way; zero when none was read.
	Holder Claim
	// Since is when it began to wait for this.
	Since time.Time
}

// Owed is what the plane has begun and not done.
type Owed struct {
	// Ops are the names of the operations, sorted, each once.
	Ops []string
}

// InstanceState says whether credentials may be issued to a service's instance.
type InstanceState string

const (
	// InstanceOpen lets credentials be issued.
	InstanceOpen InstanceState = "open"
	// InstanceFrozen stops it while a registration ends what came before.
	InstanceFrozen InstanceState = "frozen"
)

// Instance is the gate of one instance of a service.
type Instance struct {
	// Endpoint is one token: the service's name with `_` for `.`.
	Endpoint string
	// Name is the instance's, in the grammar of incarnations.
	Name  string
	State InstanceState
	// Generation counts the times the gate was opened, from 1.
	Generation uint64
	// Epoch counts the processes of the instance, from 0. Whoever shows an older one
	// is fenced.
	Epoch uint64
	// RegistrationRevision is the revision of the record that the registration
	// replaced, 0 for the first: it grows with each.
	RegistrationRevision uint64
	// Principal is whose connections serve it.
	Principal Principal
	// Operation is set exactly while State is frozen.
	Operation OperationRef
}

// RegisterInstance asks for the caller to be made the one process of an
// instance: what was issued to a former process is revoked and its holders are
// gone when it is answered, by InstanceRegistered. Refused with InstanceSuperseded
// when another process registered meanwhile, with InstanceForeign when the instance is
// another principal's, and with InstanceHeld while somebody is not gone; whatever it
// fails with, asking again goes on from there.
type RegisterInstance struct {
	Endpoint  string
	Instance  string
	Principal Principal
}

// InstanceRegistered answers RegisterInstance and ReconcileInstance.
type InstanceRegistered struct {
	Instance Instance
	// Revision is the ledger's for the gate as it was opened; whatever is issued to
	// the instance depends on it.
	Revision uint64
	// Revoked counts the credentials of former processes that were revoked by this call.
	Revoked int
}

// ReconcileInstance asks for a gate to be opened that a registration which died left
// frozen, for the process that was registered before. Answered by InstanceRegistered
// when that was done. Refused, with nothing changed, with InstanceNotFound,
// InstanceNotFrozen, RegistrationAlive while the registration may still go on, and
// RegistrationUnknown while that cannot be told; and with InstanceHeld and
// InstanceSuperseded as RegisterInstance is.
type ReconcileInstance struct {
	Endpoint string
	Instance string
}

// ReadInstance asks the reader for the gate of one instance, as the leader of the
// authority stream holds it now. Answered by Instance; refused with InstanceNotFound.
type ReadInstance struct {
	Endpoint string
	Instance string
}

// ListInstances asks the reader for the gates of an endpoint's instances, or of all
// where Endpoint is empty. Answered by Instances.
type ListInstances struct{ Endpoint string }

// Instances answers ListInstances.
type Instances struct {
	// Items are sorted by endpoint, then name.
	Items []Instance
	// Unreadable are the keys of the rows that are there and cannot be read.
	Unreadable []string
}
