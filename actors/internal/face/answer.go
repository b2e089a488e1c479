package face

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// errorBody is how every route but the OAuth one says no.
type errorBody struct {
	Error struct {
		Code      messages.Code `json:"code"`
		Reason    string        `json:"reason"`
		Message   string        `json:"message"`
		RequestID string        `json:"request_id"`
		Next      string        `json:"next"`
		Retryable bool          `json:"retryable"`
		// OpID is the operation that is waited for, if one is.
		OpID       string `json:"op_id,omitempty"`
		WaitingFor string `json:"waiting_for,omitempty"`
	} `json:"error"`
}

// throttled is a failure of a peer that has had too many.
type throttled struct {
	wait  time.Duration
	cause error
}

func (t *throttled) Error() string { return messages.RateLimited.Error() + ": " + t.cause.Error() }

// Unwrap gives the limit alone: it is what the caller is told, whatever the cause.
func (t *throttled) Unwrap() error { return messages.RateLimited }

// refuse answers with what err means to the caller.
func (c *call) refuse(err error) {
	err = meant(err)
	c.failure = err
	entry := messages.Describe(err)
	status := c.statusFor(entry)
	c.setRefusalHeaders(status, err)
	if c.to.oauth {
		c.json(status, oauthRefusal(entry, status, err))
		return
	}
	var body errorBody
	body.Error.Code, body.Error.Reason = entry.Code, entry.Reason
	body.Error.Message = messages.PublicText(err)
	body.Error.RequestID, body.Error.Next, body.Error.Retryable = c.id, entry.NextFor(c.about), entry.Retryable
	if p := (*pending)(nil); errors.As(err, &p) {
		body.Error.OpID, body.Error.WaitingFor = p.id, p.waiting
		if p.next != "" {
			body.Error.Next = p.next
		}
	}
	c.json(status, body)
}

func (c *call) setRefusalHeaders(status int, err error) {
	switch status {
	case http.StatusUnauthorized:
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="authplane"`)
	case http.StatusServiceUnavailable:
		c.w.Header().Set("Retry-After", "1")
	case http.StatusTooManyRequests:
		wait := time.Second
		var limited *throttled
		if errors.As(err, &limited) {
			wait = limited.wait
		}
		c.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
}

// meant gives a context's end its entry: nobody waits for the answer any more, or
// whoever was asked did not answer in time.
func meant(err error) error {
	var entry messages.Error
	if errors.As(err, &entry) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return messages.ActorAway.From(err)
	}
	return err
}

func (c *call) statusFor(entry messages.Error) int {
	if c.to.oauth {
		return oauthStatus(entry)
	}
	return statusOf(entry)
}

// statusOf is the status of an entry: its code's, but for the refusals that HTTP
// has a status of its own for.
func statusOf(entry messages.Error) int {
	switch entry {
	case messages.MethodRefused:
		return http.StatusMethodNotAllowed
	case messages.BodyTooLarge:
		return http.StatusRequestEntityTooLarge
	case messages.MediaTypeRefused:
		return http.StatusUnsupportedMediaType
	}
	return entry.Code.HTTPStatus()
}

// json answers with one JSON document. The values are ours, so they always encode.
func (c *call) json(status int, value any) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // a pattern is to be read as it was written; no browser is told that this is a page
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	c.raw(status, mediaJSON, body.Bytes())
}

// raw answers with a whole body, so that the answer says its own length.
func (c *call) raw(status int, media string, body []byte) {
	header := c.w.Header()
	header.Set("Content-Type", media)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // a client that has gone is no failure of ours
}

// bearerIn takes the credential out of an Authorization header; the scheme's case
// does not matter. Anything else yields nothing.
func bearerIn(header string) string {
	scheme, credential, found := strings.Cut(header, " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return credential
}
