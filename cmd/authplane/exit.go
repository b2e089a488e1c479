package main

import (
	"errors"
	"fmt"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

// verbError is an error of a verb that ran, in contrast to one of the command line.
type verbError struct{ error }

func (e *verbError) Unwrap() error { return e.error }

// usageError is a command line that cannot be meant, found out by the verb itself.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usage(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// failure is an end that is no refusal, whatever its cause is in the catalogue.
type failure struct{ error }

func (e failure) Unwrap() error { return e.error }

// exitCode is what the process exits with after err.
func exitCode(err error) int {
	var (
		verb    *verbError
		misuse  usageError
		failed  failure
		refusal *service.Refusal
		entry   messages.Error
	)
	switch {
	case err == nil:
		return messages.ExitDone
	case !errors.As(err, &verb), errors.As(err, &misuse):
		return messages.ExitUsage
	case errors.As(err, &failed):
		return messages.ExitFailed
	case errors.As(err, &refusal):
		return refusal.Code.ExitCode()
	case errors.As(err, &entry):
		return entry.Code.ExitCode()
	default:
		return messages.ExitFailed
	}
}

// complain says what went wrong and what leads on.
func (a *app) complain(err error) {
	_, _ = fmt.Fprintf(a.err, "authplane: %v\n", err)
	var (
		verb    *verbError
		refusal *service.Refusal
		entry   messages.Error
		next    string
	)
	switch {
	case !errors.As(err, &verb):
		next = "authplane help"
	case errors.As(err, &refusal):
		next = refusal.Next
		if refusal.RequestID != "" {
			_, _ = fmt.Fprintf(a.err, "  request: %s\n", refusal.RequestID)
		}
	case errors.As(err, &entry):
		next = entry.Next
	}
	if next != "" {
		_, _ = fmt.Fprintf(a.err, "  next: %s\n", next)
	}
}
