package face

import (
	"context"
	"net/http"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// The names of RFC 8693 and the answers of RFC 6749, section 5.2.
const (
	grantTypeExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	tokenTypeID       = "urn:ietf:params:oauth:token-type:id_token"
	tokenTypeJWT      = "urn:ietf:params:oauth:token-type:jwt"
	tokenTypeAccess   = "urn:ietf:params:oauth:token-type:access_token"
)

// oauthError is a refusal that has a code of OAuth's own, and the entry it is of.
type oauthError struct {
	code string
	err  error
}

func (e *oauthError) Error() string { return e.err.Error() }
func (e *oauthError) Unwrap() error { return e.err }

func oauthFault(code, format string, args ...any) error {
	return &oauthError{code: code, err: messages.Malformed.Because(format, args...)}
}

// tokenAnswer is the answer of RFC 8693, section 2.2.1.
type tokenAnswer struct {
	AccessToken     string `json:"access_token"`
	IssuedTokenType string `json:"issued_token_type"`
	TokenType       string `json:"token_type"`
	ExpiresIn       int64  `json:"expires_in"`
	Scope           string `json:"scope,omitempty"`
}

// token answers POST /oauth2/token: a provider's token for a bearer, in the form
// that OAuth clients speak. `actor` is a parameter of our own; unknown ones are
// ignored, as RFC 6749 demands.
func (f *Face) token(ctx context.Context, c *call) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	c.w.Header().Set("Pragma", "no-cache")
	if err := f.checkTokenRequest(in); err != nil {
		return err
	}
	actor, subject := in.text("actor"), in.text("subject_token")
	ttl := time.Duration(in.integer("ttl_seconds", 1, int64(MaxLife/time.Second), 0)) * time.Second
	if in.err != nil {
		return in.err
	}
	issued, err := f.config.Bridge.Person(ctx, f.ended, subject, actor, ttl)
	if err != nil {
		return err
	}
	c.json(http.StatusOK, tokenAnswer{
		AccessToken: issued.Token.Reveal(), IssuedTokenType: tokenTypeAccess, TokenType: "Bearer",
		ExpiresIn: int64(issued.Life / time.Second),
	})
	return nil
}

// checkTokenRequest refuses what this exchange cannot honour. What would be
// dangerous to ignore is refused: delegation, a narrower scope, another target.
func (f *Face) checkTokenRequest(in *input) error {
	grantType, subjectType := in.text("grant_type"), in.text("subject_token_type")
	requested, hasAudience := in.text("requested_token_type"), in.has("audience")
	audience := in.text("audience")
	switch {
	case grantType == "":
		return oauthFault("invalid_request", "grant_type is missing")
	case grantType != grantTypeExchange:
		return oauthFault("unsupported_grant_type", "the grant type is %s", grantTypeExchange)
	case !in.has("subject_token") || !in.has("actor"):
		return oauthFault("invalid_request", "subject_token and actor are needed")
	case subjectType != tokenTypeID && subjectType != tokenTypeJWT:
		return oauthFault("invalid_request", "the subject token is an id_token or a jwt")
	case in.has("actor_token") || in.has("actor_token_type"):
		return oauthFault("invalid_request", "delegation is not offered")
	case requested != "" && requested != tokenTypeAccess && requested != tokenTypeJWT:
		return oauthFault("invalid_request", "an access token is all that is issued")
	case hasAudience && audience != f.config.Space, in.has("resource"):
		return oauthFault("invalid_target", "the only audience is the space")
	case in.has("scope"):
		return oauthFault("invalid_scope", "the scope is the grant's; leave it out")
	}
	return nil
}

type oauthBody struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// oauthRefusal words a refusal as RFC 6749 and RFC 8693 do. A subject token that
// is invalid or unacceptable is invalid_request there.
func oauthRefusal(entry messages.Error, status int, err error) oauthBody {
	return oauthBody{Error: oauthCode(entry, status, err), Description: asciiOnly(messages.PublicText(err))}
}
