package supervisor

import (
	"errors"
	"fmt"
)

// Errors of the kit. They are matched with errors.Is.
var (
	// ErrUnavailable: the child is not open, died, or did not answer in time.
	// Asking again later may help.
	ErrUnavailable = errors.New("unavailable")
	// ErrOverloaded: too many messages wait for the child already.
	ErrOverloaded = errors.New("overloaded")
	// ErrClosing: the child or the tree closes. It is ErrUnavailable as well.
	ErrClosing error = &kindOf{"closing", ErrUnavailable}
	// ErrUnanswered: the life that had seen the question ended before it answered, or the
	// asker's deadline passed while the question was with it, so that what was asked may
	// have been done. It is ErrUnavailable as well; without it, ErrUnavailable and
	// ErrOverloaded mean that nobody has seen the question, and nobody will.
	ErrUnanswered error = &kindOf{"asked and not answered", ErrUnavailable}
	// ErrNoSuchActor: no child has this path.
	ErrNoSuchActor = errors.New("no such actor")
	// ErrNotApplicable: the child exists, but this cannot be done to it now.
	ErrNotApplicable = errors.New("not applicable")
	// ErrStillRunning: something did not end within its time.
	ErrStillRunning = errors.New("still running")
	// ErrLate: a child did not say in time that it is open.
	ErrLate = errors.New("not open in time")
	// ErrStopped: a life was stopped from outside the kit.
	ErrStopped = errors.New("stopped from outside")
	// ErrExhausted: a child died more often than the restart budget allows.
	ErrExhausted = errors.New("restart budget exhausted")
	// ErrWrongAnswer: an answer had another type than the one asked for.
	ErrWrongAnswer = errors.New("answer of another type")
	// ErrExists: a child of this name exists already.
	ErrExists = errors.New("exists already")
	// ErrKilled is the cause of a death by Tree.Kill.
	ErrKilled = errors.New("killed")
	// ErrUnknownFailure stands for a failure that was reported as nil.
	ErrUnknownFailure = errors.New("unknown failure")
	// ErrEnded: a life ended without having been asked to, and without an error.
	ErrEnded = errors.New("ended by itself")
)

// kindOf is an error that is also another one.
type kindOf struct {
	text   string
	parent error
}

func (e *kindOf) Error() string { return e.text }
func (e *kindOf) Unwrap() error { return e.parent }

// Outage marks a death that is nobody's fault, such as a server that is away. It
// does not count against the restart budget, is retried for ever with backoff, also
// while the tree opens, and is no failure of a close that meets it. Outage(nil) is nil.
func Outage(err error) error {
	if err == nil {
		return nil
	}
	return &marked{kind: outage, err: err}
}

// IsOutage reports whether err, or an error it wraps, was marked with Outage.
func IsOutage(err error) bool { return hasMark(err, outage) }

// isOutage is IsOutage of what came first: what failed to unwind afterwards does not
// make an outage of it.
func isOutage(err error) bool {
	var f *Failures
	for errors.As(err, &f) {
		err = f.List[0]
	}
	return IsOutage(err)
}

// Terminal marks the refusal of a close that no retry will change: it is reported
// once and the leaf then counts as closed. Terminal(nil) is nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &marked{kind: terminal, err: err}
}

// IsTerminal reports whether err, or an error it wraps, was marked with Terminal.
func IsTerminal(err error) bool { return hasMark(err, terminal) }

type mark uint8

const (
	outage mark = iota + 1
	terminal
)

type marked struct {
	kind mark
	err  error
}

func (m *marked) Error() string { return m.err.Error() }
func (m *marked) Unwrap() error { return m.err }

// hasMark looks at every marked error of the tree, since errors.As would stop at
// the first of another kind.
func hasMark(err error, kind mark) bool {
	switch e := err.(type) {
	case nil:
		return false
	case *marked:
		return e.kind == kind || hasMark(e.err, kind)
	case interface{ Unwrap() error }:
		return hasMark(e.Unwrap(), kind)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if hasMark(inner, kind) {
				return true
			}
		}
	}
	return false
}

// A PanicError is the death of a life by panic.
type PanicError struct {
	Value any    // what was passed to panic; not printed unless it is an error or a string
	Where string // "receive", "new", or the name of a task
	Stack []byte
}

func (e *PanicError) Error() string {
	switch v := e.Value.(type) {
	case error:
		return fmt.Sprintf("panic in %s: %v", e.Where, v)
	case string:
		return fmt.Sprintf("panic in %s: %s", e.Where, v)
	}
	return fmt.Sprintf("panic in %s with a %T", e.Where, e.Value)
}

// Unwrap returns the panic value when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
