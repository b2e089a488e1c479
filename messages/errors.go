package messages

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the class of a refusal or failure: what a program branches on.
type Code string

// The classes. Each maps to one HTTP status, one exit code and one NATS micro
// error, in status terms given behind it.
const (
	BadRequest         Code = "bad-request"         // 400
	Unauthenticated    Code = "unauthenticated"     // 401
	PermissionDenied   Code = "permission-denied"   // 403
	NotFound           Code = "not-found"           // 404
	AlreadyExists      Code = "already-exists"      // 409
	FailedPrecondition Code = "failed-precondition" // 412
	Conflict           Code = "conflict"            // 409
	Expired            Code = "expired"             // 401
	Unavailable        Code = "unavailable"         // 503
	Overloaded         Code = "overloaded"          // 429
	Internal           Code = "internal"            // 500
	Unimplemented      Code = "unimplemented"       // 501
)

// Error is one entry of the catalogue: a comparable value, so that errors.Is
// matches it by value wherever it was wrapped. Programs branch on Code and
// Reason, never on text.
type Error struct {
	Code Code
	// Reason is stable and dotted, `grant.live`.
	Reason string
	// Message is what the caller may know.
	Message string
	// Operator is what the operator should know besides; it never reaches a caller.
	Operator string
	// Next is the command, or the step, that leads on. `<owner>/<actor>` in it stands
	// for whom it is about; NextFor fills that in.
	Next string
	// Retryable says that the same request may succeed later unchanged.
	Retryable bool
}

// Error is the text for the caller.
func (e Error) Error() string { return e.Message }

// Because adds what was special about this case. The detail may reach the caller,
// so it names no secret and nothing the caller may not know.
func (e Error) Because(format string, args ...any) error {
	return &detailed{entry: e, detail: fmt.Sprintf(format, args...)}
}

// From adds the cause, for logs and for errors.Is; its text never reaches a caller.
func (e Error) From(cause error) error {
	return &detailed{entry: e, cause: cause}
}

// NextFor is Next for a case that is about p, or Next as it stands where p is zero. Of
// what is not there nothing could be shown: that stays with the list.
func (e Error) NextFor(p Principal) string {
	switch {
	case p.IsZero():
		return e.Next
	case e.Next == "authplane grants" && e.Code != NotFound:
		return "authplane show " + p.Owner + "/" + p.Actor
	}
	return strings.ReplaceAll(e.Next, "<owner>/<actor>", p.Owner+"/"+p.Actor)
}

// detailed is a catalogue entry in one particular case.
type detailed struct {
	entry  Error
	detail string
	cause  error
}

func (d *detailed) Error() string {
	text := d.entry.Message
	if d.detail != "" {
		text += ": " + d.detail
	}
	if d.cause != nil {
		text += ": " + d.cause.Error()
	}
	return text
}

func (d *detailed) Unwrap() []error {
	if d.cause == nil {
		return []error{d.entry}
	}
	return []error{d.entry, d.cause}
}

// Describe finds the catalogue entry in err. An error that carries none is
// InternalFault, since nobody meant its text for a caller.
func Describe(err error) Error {
	var entry Error
	if errors.As(err, &entry) {
		return entry
	}
	return InternalFault
}

// PublicText is the text a caller may see: the entry's message and the detail of
// this case, without any cause.
func PublicText(err error) string {
	entry := Describe(err)
	var d *detailed
	if errors.As(err, &d) && d.entry == entry && d.detail != "" {
		return entry.Message + ": " + d.detail
	}
	return entry.Message
}

// HTTPStatus is the status a face answers a code with.
func (c Code) HTTPStatus() int {
	switch c {
	case BadRequest:
		return 400
	case Unauthenticated, Expired:
		return 401
	case PermissionDenied:
		return 403
	case NotFound:
		return 404
	case AlreadyExists, Conflict:
		return 409
	case FailedPrecondition:
		return 412
	case Overloaded:
		return 429
	case Unavailable:
		return 503
	case Unimplemented:
		return 501
	default:
		return 500
	}
}

// Exit codes of the command line.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitRefused     = 3
	ExitUnavailable = 4
)

// ExitCode is what the command line exits with for a code.
func (c Code) ExitCode() int {
	switch c {
	case BadRequest:
		return ExitUsage
	case Unavailable, Overloaded:
		return ExitUnavailable
	case Internal, Unimplemented, "":
		return ExitFailed
	default:
		return ExitRefused
	}
}
