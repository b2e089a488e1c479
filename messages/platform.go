package messages

import (
	"context"
	"time"
)

// Assignment says which instance of which service a hosting platform has assigned to
// this space now. Whoever acts by it acts for no person.
type Assignment struct {
	// Account is the public key of the space's DATA account.
	Account string
	// Revision grows with each change of the assignment. A request names the one that it
	// was made under.
	Revision uint64
	// Endpoint and Instance are the instance, as it registered.
	Endpoint, Instance string
}

// Assignments is the platform's word on what is assigned. It is asked anew for every
// decision and never remembered; false means that nothing is assigned. It must be safe
// for concurrent use and return when ctx ends. One that panics, or takes longer than 10 s,
// does not tell: whoever asked is told PlatformAway.
type Assignments interface {
	Assignment(ctx context.Context) (Assignment, bool, error)
}

// ReadReadiness asks for the state of one process of an instance, as its service tells
// it. Answered by Readiness.
type ReadReadiness struct {
	Endpoint, Instance string
	// Epoch is the process that counts. What another one says is not heard.
	Epoch uint64
}

// Readiness is what a service tells of itself over NATS (`$SRV.PING`, `INFO` and
// `STATS`). A silent service is an answer as well.
type Readiness struct {
	Endpoint, Instance string
	Epoch              uint64
	// Serving says that the process answered; the rest is zero where it did not.
	Serving bool
	// Version is the service's own, and Started when it began to serve.
	Version string
	Started time.Time
	// Endpoints are what it answers, in the order in which it names them.
	Endpoints []ServedEndpoint
}

// ServedEndpoint is one subject that a service answers.
type ServedEndpoint struct {
	Name, Subject string
	// Requests and Errors are counted since the service started.
	Requests, Errors int
	// Average is how long an answer takes.
	Average time.Duration
}

// PlatformPlace names what a platform asks about, and the assignment that it goes by.
type PlatformPlace struct {
	Space string
	// Account is the public key of the space's DATA account.
	Account string
	// Revision is of the assignment that the platform has read.
	Revision           uint64
	Endpoint, Instance string
}

// PlatformActor is the actor that a platform goes by among its own.
const PlatformActor = "platform"

// AskPlatformController is AskController for whoever hosts the space, about the instance
// that is assigned to it. The request's actor is PlatformActor. Answered by
// ControllerIssued; refused as AskController is, but for what refuses a person, and with
// what refuses the place.
type AskPlatformController struct {
	At      PlatformPlace
	Request ControllerRequest
}

// CheckPlatformController is CheckController for whoever hosts the space, about the
// instance that is assigned to it. The process' actor is PlatformActor. Answered by
// ControllerChecked; refused as CheckController is, but for what refuses a person, and with
// what refuses the place.
type CheckPlatformController struct {
	At      PlatformPlace
	Process RunController
}
