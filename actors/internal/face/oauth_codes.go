package face

import (
	"errors"
	"net/http"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// oauthCode is the error code that OAuth has for a refusal.
func oauthCode(entry messages.Error, status int, err error) string {
	var own *oauthError
	switch {
	case errors.As(err, &own):
		return own.code
	case entry == messages.CapabilityInvalid:
		return "invalid_client"
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		return "temporarily_unavailable"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request"
}

// oauthStatus is the status OAuth has for a refusal: a subject token that is
// invalid, or not acceptable, is a bad request (RFC 8693, section 2.2.2), since
// 401 would speak of the client.
func oauthStatus(entry messages.Error) int {
	status := statusOf(entry)
	proof := status == http.StatusUnauthorized || status == http.StatusForbidden
	if proof && entry != messages.CapabilityInvalid && entry != messages.OriginRefused {
		return http.StatusBadRequest
	}
	return status
}

// asciiOnly keeps a description within the characters RFC 6749 allows in one.
func asciiOnly(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r == '\\':
			return '/'
		case r < 0x20 || r > 0x7e:
			return '?'
		}
		return r
	}, text)
}
