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

// RegisterInstance asks the registrar to make the caller the one process of an
// instance: what was issued to a former process is revoked and its holders are
// gone when it is answered, by InstanceRegistered. Refused with InstanceSuperseded
// when another process registered meanwhile. The registrar does it by itself, for its
// own process, when it opens; no actor is asked for it yet.
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

// ReconcileInstance asks the registrar to open a gate that a registration left
// frozen, for the process that is registered. Answered by InstanceRegistered. The
// ledger can do it; no actor is asked for it yet.
type ReconcileInstance struct {
	Endpoint string
	Instance string
}
