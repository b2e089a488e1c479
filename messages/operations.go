package messages

import "time"

// OperationKind says what an operation ends.
type OperationKind string

const (
	// Takeover ends everything issued to an incarnation, which goes on under the next
	// epoch with nothing.
	Takeover OperationKind = "takeover"
	// Retirement ends an incarnation for good.
	Retirement OperationKind = "retirement"
)

// OperationStep says how far an operation has come. A step is durable before what
// comes after it begins, so that whoever resumes repeats no more than one.
type OperationStep string

const (
	// StepBegun is an operation whose gate is shut: nothing is issued any more, nobody
	// connects anew.
	StepBegun OperationStep = "begun"
	// StepRevoked has every credential of the incarnation revoked.
	StepRevoked OperationStep = "revoked"
	// StepEvicted has every connection proved gone.
	StepEvicted OperationStep = "evicted"
	// StepDrained has the work that was accepted ended; only a retirement has it.
	StepDrained OperationStep = "drained"
	// StepDone is an operation that is committed.
	StepDone OperationStep = "done"
	// StepSuperseded is a takeover that a retirement of the same incarnation ended.
	StepSuperseded OperationStep = "superseded"
)

// Operation is a takeover or a retirement as it is recorded.
type Operation struct {
	// ID is in the grammar of incarnations. A retirement's derives from UID, so that
	// everybody who asks for it asks for the same one.
	ID        string
	Kind      OperationKind
	Principal Principal
	UID       string
	Step      OperationStep
	// By says who asked first.
	By string
	// Began and Ended are in whole milliseconds; Ended is zero until it is over.
	Began, Ended time.Time
	// Outcome is what was proved, as far as Step has come.
	Outcome Outcome
}

// Eviction says how it was proved that nobody is connected any more.
type Eviction string

const (
	// EvictionSwept is the proof by two sweeps of every server without a trace.
	EvictionSwept Eviction = "swept"
	// EvictionExpired is the proof by time, where the servers cannot be asked: the
	// longest permission that anybody had has run out.
	EvictionExpired Eviction = "expired"
)

// Outcome is what an operation proved.
type Outcome struct {
	// Revoked counts the descendant credentials, none of which is active any more.
	Revoked int
	// Evicted counts the connections that were dropped.
	Evicted int
	// Vacuous says that there was nobody to evict from the start.
	Vacuous bool
	// Eviction is empty until StepEvicted.
	Eviction Eviction
	// Servers are the names of the servers that listed everything without a trace,
	// sorted.
	Servers []string
	// Epoch is the one that a takeover began.
	Epoch uint64
	// Frontiers are the last sequences of the named streams when an incarnation had
	// ended; only a retirement has them.
	Frontiers map[string]uint64
}

// OperationProgress is an operation as the process that holds the plane sees it. Of
// another process's it shows what is recorded.
type OperationProgress struct {
	Operation
	// Doing says what is being done now; empty when nothing is.
	Doing string
	// Done of Total tell how far that is; Total is 0 where it cannot be known.
	Done, Total int
	// Attempt counts the tries of the present step, from 1.
	Attempt int
	// WaitingFor says why the last try did not do, and Next which command leads on.
	WaitingFor string
	Next       string
	// RetryAt is when it is tried again; zero while it is being tried.
	RetryAt time.Time
}

// AskRetirement asks the writer to make a retirement owed: the grant is revoked, so
// that nothing is issued from the moment it is answered, and whoever holds the plane
// ends the incarnation. Answered by RetirementAsked. Asking again for the same
// incarnation changes nothing.
type AskRetirement struct {
	Principal Principal
	// UID is the incarnation meant; empty is the one that stands.
	UID string
	By  string
}

// RetirementAsked answers AskRetirement once it is durable.
type RetirementAsked struct {
	Principal Principal
	UID       string
	// Operation is the id of the retirement; empty when the grant was never used, so
	// that there is nothing to end.
	Operation string
}

// BeginTakeover asks whoever holds the plane to begin a takeover, or to go on with
// the one of that id. Answered by OperationProgress once it is begun. Refused with
// OperationConflict when the id names another operation, GateShut when another
// operation holds the gate, IncarnationEnded when the incarnation is not current,
// IncarnationUnknown when none is named and nothing was ever issued, and PlaneAway by a
// process that does not hold the plane.
type BeginTakeover struct {
	ID        string
	Principal Principal
	// UID is the incarnation meant; empty is the one that stands.
	UID string
	By  string
}

// RevokeHandle asks whoever holds the plane to end everything that was ever derived
// from a signed handle, whoever holds it: nothing is derived from it any more, every
// credential is revoked, and the connections of their holders are judged anew. Asking
// again finishes what was not done. Answered by HandleRevoked; refused with
// HandleNotFound, and with PlaneAway by a process that does not hold the plane.
type RevokeHandle struct {
	// Issuer names the key that signed it, and ID it among those of that key.
	Issuer, ID string
}

// HandleRevoked answers RevokeHandle.
type HandleRevoked struct {
	// Revoked counts the credentials of the lineage, none of which is active any more.
	Revoked int
	// Holders are whose connections were judged anew, and Dropped counts these.
	Holders []Principal
	Dropped int
}

// ListOperations asks for every operation that is owed. Answered by Operations.
type ListOperations struct{}

// Operations answers ListOperations, in the order in which they began.
type Operations struct{ Items []OperationProgress }

// ReadOperation asks for one operation by its id, whether it is done or not. Answered
// by OperationProgress; refused with OperationNotFound.
type ReadOperation struct{ ID string }

// PlaneHeld tells the plane's desk that this process holds the plane, by which claim.
// It is not answered.
type PlaneHeld struct{ ClaimID string }

// RetirementsAsked tells the plane's desk that a retirement may have been asked for.
// It is a nudge, never evidence, and is not answered.
type RetirementsAsked struct{}

// AwaitOperation asks for an operation once it is over. Answered by
// OperationProgress then, or with what is known of it at the deadline; refused with
// OperationNotFound when there is none by then.
type AwaitOperation struct {
	ID       string
	Deadline time.Time
}

// ReadRoster asks for the names of the servers that were ever met. Answered by
// KnownServers.
type ReadRoster struct{}

// LearnServers asks the writer to add servers to those that were ever met. Answered
// by KnownServers.
type LearnServers struct{ Names []string }

// ForgetServer asks the writer to take a server out of those that were ever met,
// since it is gone for good: only then may it be missing from a proof. Answered by
// KnownServers. Refused with ServerUnknown when it was never met.
type ForgetServer struct{ Name string }

// KnownServers are the names of the servers that were ever met, sorted.
type KnownServers struct{ Names []string }

// Unask asks the writer to take back what this process asked for, of incarnations
// whose retirement is recorded by now. Answered by Unasked.
type Unask struct{ UIDs []string }

// Unasked answers Unask.
type Unasked struct{}
