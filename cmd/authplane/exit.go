package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

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

// advised is an error with the command, or the step, that leads on from it here.
type advised struct {
	error
	next string
}

func (e advised) Unwrap() error { return e.error }

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

// complain says what went wrong and what leads on: in words, or with --json in the
// form that the service's own refusals have.
func (a *app) complain(err error, verb string) {
	told := a.describe(err, verb)
	told.Next = a.here(told.Next)
	if a.json {
		_ = writeJSON(a.err, map[string]service.Refusal{"error": told})
		return
	}
	_, _ = fmt.Fprintf(a.err, "authplane: %v\n", err)
	if told.RequestID != "" {
		_, _ = fmt.Fprintf(a.err, "  request: %s\n", told.RequestID)
	}
	if told.Next != "" {
		_, _ = fmt.Fprintf(a.err, "  next: %s\n", told.Next)
	}
}

// describe tells an error as the service would, with its whole text: it goes to
// whoever runs the command. verb is the command that failed, `authplane show`.
func (a *app) describe(err error, verb string) service.Refusal {
	var (
		ran     *verbError
		misuse  usageError
		failed  failure
		refusal *service.Refusal
		entry   messages.Error
		advice  advised
		told    service.Refusal
	)
	switch {
	case !errors.As(err, &ran), errors.As(err, &misuse):
		told = service.Refusal{Code: messages.BadRequest, Reason: "command.usage", Next: helpOn(verb)}
	case errors.As(err, &refusal):
		if told = *refusal; told.Next == "" && told.Code == messages.BadRequest {
			told.Next = helpOn(verb)
		}
	case errors.As(err, &entry) && !errors.As(err, &failed):
		told = service.Refusal{Code: entry.Code, Reason: entry.Reason, Next: entry.Next, Retryable: entry.Retryable}
		switch {
		case entry == messages.ServiceAway:
			told.Next = a.startWith()
		case told.Next == "" && told.Code == messages.BadRequest:
			told.Next = helpOn(verb)
		}
	default:
		told = service.Refusal{Code: messages.Internal, Reason: messages.InternalFault.Reason, Next: stepAfter(err)}
	}
	if errors.As(err, &advice) {
		told.Next = advice.next
	}
	told.Message = err.Error()
	return told
}

func helpOn(verb string) string {
	_, name, _ := strings.Cut(verb, " ")
	return strings.TrimSpace("authplane help " + name)
}

// stepAfter is what leads on from an error of the system, where that is known.
func stepAfter(err error) string {
	switch {
	case errors.Is(err, messages.ReleaseUnreachable):
		return "start it again; until then whoever is on standby takes over when the broker is back"
	case errors.Is(err, syscall.EADDRINUSE):
		return "end what listens on that port, or name another one in authplane.yaml"
	case errors.Is(err, fs.ErrPermission):
		return "run it as the user whose files these are"
	case errors.Is(err, fs.ErrNotExist):
		return "name a file that is there, or one to be made in a directory that is"
	case errors.Is(err, syscall.ENOTDIR):
		return "name a directory: one that init or dev made, or one that is to be made"
	case errors.Is(err, syscall.ENOSPC):
		return "make room on that disk"
	}
	return ""
}

// here makes the commands in a text ones that reach the same service as this one.
func (a *app) here(text string) string {
	if a.dir == defaultDir || strings.Contains(text, "--dir") || strings.Contains(text, "--config") {
		return text
	}
	command := "authplane --dir " + shellWord(a.dir) + " "
	if rest, whole := strings.CutPrefix(text, "authplane "); whole {
		return command + rest
	}
	return strings.ReplaceAll(text, "next: authplane ", "next: "+command)
}

// shellWord writes a word as a shell reads it back.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r == '/' || r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
