package messages

import "time"

// RunController is the process that asks about a run: a registered one of a service's
// instance. A controller elsewhere asks over HTTP with the body of ControllerRequest for a
// door that takes the receipt, and `"run":…` and the members of the question besides.
type RunController struct {
	Endpoint, Instance string
	// Epoch is that of the process, from 0.
	Epoch uint64
	// Principal is whose connections serve the instance.
	Principal Principal
	// Space, Actor, Keys and Receipt are what a process elsewhere shows, as in
	// ControllerRequest. On whose behalf it asks is for the door that it came by to say.
	// Whoever embeds the space, and registered the instance himself, shows none of it: his
	// question with a receipt is refused, as that of anybody else without one is.
	Space, Actor string
	Keys         ControllerKeys
	Receipt      Secret
}

// RunRequest is a request that somebody made of a service, as the controller who got it
// forwards it. Package runrequest makes and signs them. Over HTTP it is `{"subject":…,
// "payload":…}` with the payload in base64, and `certificate` and `signature` where the
// caller signed.
type RunRequest struct {
	// Subject is where it was published, and Payload what was, up to 64 KiB.
	Subject string
	Payload []byte
	// Certificate and Signature are the caller's; both are empty where the request is to
	// be witnessed by observation.
	Certificate, Signature string
}

// BindRunCaller asks for a certificate that a key is a principal's, so that he can sign
// requests. Answered by RunCallerBound; refused with what refuses the bearer, and
// Malformed for what is no public user key. Over HTTP it is POST /v1/runs/bind of
// `{"key":U…}`, with the bearer as `Authorization: Bearer`, and the answer
// `{"certificate":…, "expires_at":…}`.
type BindRunCaller struct {
	Bearer Secret
	Key    string
}

// RunCallerBound answers BindRunCaller. The certificate is of no use without the key, and
// holds for no longer than the bearer.
type RunCallerBound struct {
	Certificate string
	Expires     time.Time
}

// RunAdmission is the record of a run: who started it, where it runs, and the most that
// it may ever do, as it stood when the run was admitted.
type RunAdmission struct {
	Endpoint, Run string
	// Instance is the only one that runs it.
	Instance string
	// Caller started it, in his incarnation UID, under this revision of his grant.
	Caller        Principal
	UID           string
	GrantRevision uint64
	// Publish and Subscribe are the ceiling, as the grant had them.
	Publish, Subscribe []string
	// Subject is that of the request, and Request names it and no other.
	Subject, Request string
	// Witness is `signature` or `observation`.
	Witness    string
	AdmittedAt time.Time
}

// The ways in which it is shown that a caller made a request.
const (
	WitnessSignature   = "signature"
	WitnessObservation = "observation"
)

// AdmitRun asks for the admission of a run that a request started. Answered by
// RunAdmitted: the same for the same request, or the same caller, and run. Nothing is
// written by what is refused: with RunUnwitnessed, RunExceeded, RunRequestUsed for a
// request that started another run, RunConflict for a run of another caller or instance,
// with InstanceNotFound, InstanceNotOpen, InstanceForeign, InstanceSuperseded, with what
// refuses the caller (NotGranted, IncarnationEnded, GateShut), ObserverOff, Malformed; and
// a controller elsewhere as CheckController is. Over HTTP the question has `request`.
type AdmitRun struct {
	Controller RunController
	Run        string
	Request    RunRequest
}

// RunAdmitted answers AdmitRun.
type RunAdmitted struct {
	Admission RunAdmission
	// Revision is the record's.
	Revision uint64
}

// RunRevocation is the record that nothing is issued for a run any more.
type RunRevocation struct {
	Endpoint, Run string
	// By is who revoked it first, and Reason what that one said.
	By, Reason string
	RevokedAt  time.Time
}

// RevokeRun asks for the revocation of a run. It is answered by RunRevocation: the first
// one's, whoever asks. Refused with RunNotFound, and with RunExceeded, with nothing
// written, for who is neither an operator nor of the owner whose run it is.
type RevokeRun struct {
	Endpoint, Run string
	// Reason is up to 256 characters.
	Reason string
	// By is who asks, as he was verified; zero for the operator of the service.
	By Principal
	// Admin says that By may revoke everybody's.
	Admin bool
}

// RevokeControllerRun asks for the revocation of a run of the controller's own instance.
// It is answered as RevokeRun is; refused, with nothing written, with RunNotAdmitted for a
// run of another instance, or none, and as AdmitRun is of the controller. Over HTTP the
// question may have `reason`.
type RevokeControllerRun struct {
	Controller RunController
	Run        string
	// Reason is up to 256 characters.
	Reason string
}

// AttemptRun asks for the credentials of the next driver of a run, for keys that the
// controller made. Answered by RunAttempted, and again the same for the same question.
// Nothing is signed by what is refused: with RunNotAdmitted, RunRevoked, RunEnded,
// RunAttemptTaken unless Attempt is the next one and this question reserved it, with
// JournalDamaged, and as AdmitRun is of the controller and of Served. Over HTTP the
// question has `takeover`, `attempt`, `driver` and `mediator`, and may have
// `lifetime_seconds`, and Served as `request`; `request_id` is Request.
type AttemptRun struct {
	Controller RunController
	Run        string
	// Request names the question: 22 to 64 characters of [A-Za-z0-9_-].
	Request string
	// Takeover names the driver to come, 1 to 64 of the same.
	Takeover string
	// Attempt counts the drivers of the run, from 1: exactly one more than were recorded.
	Attempt uint64
	// Driver and Mediator are public user keys that differ.
	Driver, Mediator string
	// Lifetime is whole seconds from a minute to the standing lifetime, which 0 is.
	Lifetime time.Duration
	// Served is the request to resume, where one was made; its Subject is empty for none.
	Served RunRequest
}

// RunCredential is the JWT of a key that somebody else made.
type RunCredential struct {
	Key, JWT string
	Expires  time.Time
}

// RunAttempted answers AttemptRun.
type RunAttempted struct {
	Attempt RunAttempt
	// Driver keeps the journal, and Mediator acts under the ceiling of the run.
	Driver, Mediator RunCredential
}

// RunAttempt is the record of one driver of a run.
type RunAttempt struct {
	Endpoint, Run, Instance string
	// Attempt is also the fencing token of the driver, and Epoch that of the process.
	Attempt, Epoch                      uint64
	Request, Takeover, Driver, Mediator string
	// Head is the sequence of the journal's last record, as it was known: it never has
	// fewer.
	Head uint64
	// ReservedAt and Expires bound its credentials, in whole seconds.
	ReservedAt, Expires time.Time
}

// OperateRun asks for a credential of a minute that reads the journal of a run, or that
// answers one pause of it. Answered by RunOperated; refused as AttemptRun is, and with
// RunNotWaiting, and RunUnwitnessed for an answer that nobody asked to give. Over HTTP the
// question has `key`, and may have `step`, `amend`, and Served as `request`.
type OperateRun struct {
	Controller RunController
	Run        string
	// Key is a public user key.
	Key string
	// Step is the one that is answered; empty for reading. Amend changes an accepted
	// answer.
	Step  string
	Amend bool
	// Served is the request of whoever answers.
	Served RunRequest
}

// RunOperated answers OperateRun. Subject is where the answer goes; empty for reading.
type RunOperated struct {
	Credential RunCredential
	Subject    string
}

// ListRuns asks for the runs of an endpoint, or all where that is empty. Answered by Runs.
type ListRuns struct{ Endpoint string }

// ShowRun asks for one run. Answered by Run, or refused with RunNotFound.
type ShowRun struct{ Endpoint, Run string }

// Run is a run as it is recorded.
type Run struct {
	Admission RunAdmission
	// Revoked is zero for one that was not revoked.
	Revoked RunRevocation
	// Attempts are in their order.
	Attempts []RunAttempt
}

// Runs answers ListRuns.
type Runs struct {
	// Items are sorted by endpoint, then name, without their attempts.
	Items []Run
	// Unreadable are the keys of the rows that are there and cannot be read.
	Unreadable []string
}

// AwaitRequest asks the observer of requests whether one was published. It is answered by
// RequestSeen once it was, and refused with RunUnwitnessed when it was not seen within 2 s.
type AwaitRequest struct {
	Subject string
	// Digest is `sha256:` and 64 hex digits of the payload.
	Digest string
}

// RequestSeen answers AwaitRequest.
type RequestSeen struct{}
