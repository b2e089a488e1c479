package messages

import "time"

// ControllerDoor is one of the questions that a controller asks.
type ControllerDoor string

const (
	// DoorPrepare begins the life of a process: it binds the process to its keys, and
	// answers the credentials that it starts with.
	DoorPrepare ControllerDoor = "prepare"
	// DoorActivate says what the process answers, and gives the receipt that every later
	// door asks for.
	DoorActivate ControllerDoor = "activate"
	// DoorRenew issues all that stands anew.
	DoorRenew ControllerDoor = "renew"
	// DoorSession issues for one session.
	DoorSession ControllerDoor = "session"
	// DoorRetire issues to who may ask for one retirement over the control rail.
	DoorRetire ControllerDoor = "retire"
)

// ControllerKind is what one credential of a controller is for. There are no others.
//
// It connects with the JWT and its key, without the sentinel, to the account of services,
// with `_INBOX_<user>` as its inbox prefix. What it may say and hear stands under
// `cotal.<space>.controller.<endpoint>.<instance>.<epoch>.`, and is given below without
// that.
type ControllerKind string

const (
	// KindSupervisor hands out work and hears what comes of it: it says `work.>`, and
	// hears `done.>` and `event.>`.
	KindSupervisor ControllerKind = "supervisor"
	// KindExecutor does the work that the supervisor hands out: it hears `work.>`, and
	// says `done.>`. It lives for 5 minutes at most.
	KindExecutor ControllerKind = "executor"
	// KindServer answers the commands that the controller was activated with: it hears
	// `ask.<command>` and what NATS micro services are asked at `$SRV`, and says `event.>`.
	KindServer ControllerKind = "server"
	// KindRecorder writes how far actions are, to `record.>`.
	KindRecorder ControllerKind = "recorder"
	// KindLedger writes what becomes of sessions, to `ledger.>`.
	KindLedger ControllerKind = "ledger"
	// KindSession serves one session: it hears `session.<id>.>`, and answers.
	KindSession ControllerKind = "session"
	// KindRequester asks for one retirement.
	KindRequester ControllerKind = "requester"
)

// ControllerKeys are the users of a controller, which made the keys itself: these are
// the public halves. All differ.
type ControllerKeys struct{ Supervisor, Executor, Server, Recorder, Ledger string }

// ControllerRequest is what a controller asks at a door, as it says it. Over HTTP it is
// POST /v1/controllers/<door> with a bearer of the person, or an id token of the provider,
// as `Authorization: Bearer`, and with the body
//
//	{"v":1, "space":…, "actor":…, "endpoint":…, "instance":…, "epoch":0, "request_id":…,
//	 "keys":{"supervisor":U…, "executor":U…, "server":U…, "recorder":U…, "ledger":U…}}
//
// and for activate `"commands":[…]`; for every door after it `"receipt":…`, for session
// `"session":{"id":…, "user":U…, "expires_at":…}`, and for retire
// `"target":{"owner":…, "actor":…, "uid":…, "op_id":…, "user":U…}`. The answer has
// `credentials` by kind, each with `user`, `jwt` and `expires_at`, and the `receipt`.
type ControllerRequest struct {
	Door  ControllerDoor
	Space string
	// Actor is the holder's, among those of its owner.
	Actor string
	// Endpoint and Instance name the controller, and Epoch which process of it this is.
	Endpoint, Instance string
	Epoch              uint64
	// ID names the request, by 22 to 64 characters of [A-Za-z0-9_-]: the same question
	// under the same id has the same answer, until the first of the credentials in it runs
	// out, or for 2 minutes.
	ID   string
	Keys ControllerKeys
	// Commands are what the server answers, sorted, of [a-z0-9_-]; activate alone has them.
	Commands []string
	// Receipt is what activate gave; prepare and activate have none.
	Receipt Secret
	// Session is set for session alone, and Target for retire alone.
	Session ControllerSession
	Target  ControllerTarget
}

// ControllerSession is one session of a controller.
type ControllerSession struct {
	ID string
	// User is the public key of who serves it.
	User string
	// Expires is when it ends, in whole milliseconds; no later than a day from now counts.
	Expires time.Time
}

// ControllerTarget is one retirement that a controller is to ask for.
type ControllerTarget struct {
	Principal Principal
	UID       string
	// Operation is the retirement's id, which derives from UID: the first 32 characters of
	// `r` and the hex SHA-256 of `authplane retirement <uid>`.
	Operation string
	// User is the public key of who asks.
	User string
}

// ControllerPerson is a person at a controller's door, as his proof names him; what he
// may do is read from the ledger.
type ControllerPerson struct {
	Principal Principal
	// UID and Credential are of his bearer; empty for a provider's proof.
	UID, Credential string
	// Scope is his bearer's. For a provider's proof it is empty, and bounds nothing.
	Scope []string
}

// AskController asks the issuer for what a controller's door gives. Answered by
// ControllerIssued. Refused, with nothing released, with SuperviseMissing,
// ControllerSpace, ControllerUnregistered, InstanceNotOpen, InstanceForeign,
// InstanceSuperseded, ReceiptInvalid, ControllerTaken, ControllerUnprepared,
// ControllerRequestConflict, ControllerRequests, CredentialGone, ControllerTarget's
// refusals, and with what refuses the person himself.
type AskController struct {
	Person  ControllerPerson
	Request ControllerRequest
}

// CheckController asks the issuer whether a process that shows its receipt is the
// registered one of its instance, and whether the person may run it now: with what
// AskController checks at every door after activate, and in that order. Answered by
// ControllerChecked; nothing is written. Refused with SuperviseMissing, ControllerSpace,
// ControllerActor, ControllerUnregistered, InstanceNotOpen, InstanceForeign,
// InstanceSuperseded, ReceiptInvalid, ControllerTaken, ControllerUnprepared,
// CredentialGone, and with what refuses the person himself.
type CheckController struct {
	Person  ControllerPerson
	Process RunController
}

// ControllerChecked answers CheckController.
type ControllerChecked struct{}

// ControllerCredential is one credential of a controller: without the key that the
// controller keeps it is of no use to anybody.
type ControllerCredential struct {
	Kind ControllerKind
	// User is the public key that it is for, JWT what the servers believe.
	User, JWT string
	Expires   time.Time
}

// ControllerIssued answers AskController.
type ControllerIssued struct {
	Endpoint, Instance string
	Epoch              uint64
	Principal          Principal // the instance's
	RequestID          string
	// Credentials are exactly those of the door, in the order of the kinds.
	Credentials []ControllerCredential
	// Receipt is for every later door; activate and renew give it.
	Receipt Secret
	// Issued is when they were first issued, Expires when the first of them runs out.
	Issued, Expires time.Time
}

// ListControllers asks the issuer which instances were issued controllers' credentials.
// Answered by Controllers.
type ListControllers struct{}

// Controllers answers ListControllers.
type Controllers struct {
	// Items are sorted by endpoint, then name.
	Items []Controller
	// Unreadable are the keys of the rows that are there and cannot be read.
	Unreadable []string
}

// Controller is an instance that is run by a controller.
type Controller struct {
	Endpoint, Instance string
	// Principal is the instance's, and State and Epoch its gate's.
	Principal Principal
	State     InstanceState
	Epoch     uint64
	// Prepared is the epoch of the process that the issuer knows; it is Epoch unless a
	// newer process has registered and not come yet.
	Prepared uint64
	// Activated says that it may renew.
	Activated bool
	// Live counts its credentials that were neither revoked nor have run out, and Expires
	// is when the first of them does; zero without any.
	Live    int
	Expires time.Time
}

// EvictFamily asks for the end of the connections of some whom an instance's
// credentials were issued to. Answered by FamilyEvicted.
type EvictFamily struct {
	Endpoint, Instance string
	// Principals are 1 to MaxEvictFamily, each once.
	Principals []Principal
}

// MaxEvictFamily is how many principals one question may be about.
const MaxEvictFamily = 64

// FamilyEvicted answers EvictFamily, in the order of the question.
type FamilyEvicted struct{ Verdicts []EvictionVerdict }

// EvictionVerdict is what is known of one principal of an instance's family.
type EvictionVerdict struct {
	Principal Principal
	// Evicted counts the connections that were dropped.
	Evicted int
	// Gone says that it is proved that nobody is connected as the principal.
	Gone bool
	// Until is when the last credential that cannot be taken back runs out, and Gone
	// becomes possible; zero when there is none.
	Until time.Time
	// Note says why it is not proved.
	Note string
}
