package service

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cotal-ai/authplane/messages"
)

// Refusal is a service's answer that is not yes.
type Refusal struct {
	Code      messages.Code `json:"code"`
	Reason    string        `json:"reason"`
	Message   string        `json:"message"`
	RequestID string        `json:"request_id"`
	// Next is the command that leads on; often empty.
	Next      string `json:"next"`
	Retryable bool   `json:"retryable"`
	// OpID is the operation that is waited for, if one is, and WaitingFor what it waits
	// for.
	OpID       string `json:"op_id,omitempty"`
	WaitingFor string `json:"waiting_for,omitempty"`
}

// Error is the message and, in brackets, the stable reason.
func (r *Refusal) Error() string {
	if r.Reason == "" {
		return r.Message
	}
	return fmt.Sprintf("%s (%s)", r.Message, r.Reason)
}

// refusalFrom reads the body of an answer that is not 2xx. One that is not ours, a
// proxy's for instance, keeps the meaning of its status.
func refusalFrom(status int, body []byte) *Refusal {
	var envelope struct {
		Error *Refusal `json:"error"`
	}
	if err := json.Unmarshal(body, &envelope); err == nil && envelope.Error != nil && envelope.Error.Code != "" {
		return envelope.Error
	}
	code := codeOf(status)
	return &Refusal{
		Code:      code,
		Message:   fmt.Sprintf("answered %d %s", status, http.StatusText(status)),
		Retryable: code == messages.Unavailable || code == messages.Overloaded,
	}
}

func codeOf(status int) messages.Code {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return messages.BadRequest
	case http.StatusUnauthorized:
		return messages.Unauthenticated
	case http.StatusForbidden:
		return messages.PermissionDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return messages.NotFound
	case http.StatusConflict:
		return messages.Conflict
	case http.StatusPreconditionFailed:
		return messages.FailedPrecondition
	case http.StatusTooManyRequests:
		return messages.Overloaded
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return messages.Unavailable
	default:
		return messages.Internal
	}
}
