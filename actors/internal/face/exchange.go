package face

import (
	"context"
	"net/http"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// exchangeRequest is a proof, of a person or of a machine, and a wish.
type exchangeRequest struct {
	idToken   messages.Secret
	principal messages.Principal
	secret    messages.Secret
	ttl       time.Duration
}

// exchangeAnswer is a bearer. Expires is RFC 3339, UTC, in whole seconds.
type exchangeAnswer struct {
	Token     string `json:"token"`
	Owner     string `json:"owner"`
	ExpiresAt string `json:"expires_at"`
}

func readExchange(in *input) (exchangeRequest, error) {
	person, machine := in.has("id_token"), in.has("owner") || in.has("actor_token")
	request := exchangeRequest{
		idToken:   messages.NewSecret(in.text("id_token")),
		principal: messages.Principal{Owner: in.text("owner"), Actor: in.text("actor")},
		secret:    messages.NewSecret(in.text("actor_token")),
		ttl:       time.Duration(in.integer("ttl_seconds", 1, int64(MaxLife/time.Second), 0)) * time.Second,
	}
	if err := in.done(); err != nil {
		return exchangeRequest{}, err
	}
	switch {
	case person && machine:
		return exchangeRequest{}, messages.Malformed.Because("send id_token, or owner and actor_token, not both")
	case request.principal.Actor == "":
		return exchangeRequest{}, messages.Malformed.Because("actor is missing")
	case !person && !machine:
		return exchangeRequest{}, messages.Malformed.Because("send id_token, or owner and actor_token")
	case person && request.idToken.IsZero():
		return exchangeRequest{}, messages.Malformed.Because("id_token is empty")
	case machine && (request.principal.Owner == "" || request.secret.IsZero()):
		return exchangeRequest{}, messages.Malformed.Because("send owner and actor_token together")
	}
	return request, nil
}

// exchange answers POST /exchange.
func (f *Face) exchange(ctx context.Context, c *call) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	request, err := readExchange(in)
	if err != nil {
		return err
	}
	issued, err := f.bridge(ctx, request)
	if issued.Owner != "" { // it was proved
		c.about = messages.Principal{Owner: issued.Owner, Actor: request.principal.Actor}
	}
	if err != nil {
		return err
	}
	c.json(http.StatusOK, exchangeAnswer{
		Token: issued.Token.Reveal(), Owner: issued.Owner, ExpiresAt: issued.Expires.UTC().Format(time.RFC3339),
	})
	return nil
}

func (f *Face) bridge(ctx context.Context, r exchangeRequest) (Issued, error) {
	if r.idToken.IsZero() {
		return f.config.Bridge.Machine(ctx, f.ended, r.principal, r.secret, r.ttl)
	}
	return f.config.Bridge.Person(ctx, f.ended, r.idToken.Reveal(), r.principal.Actor, r.ttl)
}
