package face

import (
	"context"
	"net/http"

	"github.com/cotal-ai/authplane/messages"
)

// PublicConfig is what the public face tells besides.
type PublicConfig struct {
	// URL tells how clients reach this face, without a trailing slash. It is asked
	// for each answer, since it may be known only once the face is bound.
	URL func() string
	// NATSURL is where clients connect to.
	NATSURL string
	// Sentinel is the powerless creds, or the path of them, that clients carry their
	// bearer with. They are for everybody and thus no secret.
	Sentinel string
	// ProviderIssuer is where people log in; empty when only machines do.
	ProviderIssuer string
	// Controllers answers at the doors of controllers, and Verifier verifies the bearers
	// that are shown there; nil leaves the doors out.
	Controllers Controllers
	Verifier    Verifier
	// Runs answers controllers about runs; nil leaves those doors out. It takes Verifier.
	Runs ControllerRuns
}

// Public makes the face that clients elsewhere use. The proof of identity is the
// only credential there; everything that is not listed here is nothing.
func Public(c Config, p PublicConfig) *Face {
	f := newFace("public", c)
	f.public, f.controllers = p, p.Controllers
	rs := &f.routes
	rs.on("POST", "/exchange", endpoint{serve: f.exchange, queued: true, proves: true, media: []string{mediaJSON, mediaForm}})
	rs.on("POST", "/oauth2/token", endpoint{serve: f.token, queued: true, proves: true, oauth: true, media: []string{mediaForm}})
	rs.on("GET", "/jwks", endpoint{serve: f.jwks})
	rs.on("GET", "/.well-known/oauth-authorization-server", endpoint{serve: f.serverMetadata})
	rs.on("GET", "/.well-known/cotal-mesh", endpoint{serve: f.mesh})
	rs.on("GET", "/livez", endpoint{serve: f.live})
	if p.Controllers != nil {
		rs.on("POST", "/v1/controllers/prepare", f.door(messages.DoorPrepare))
		rs.on("POST", "/v1/controllers/activate", f.door(messages.DoorActivate))
		rs.on("POST", "/v1/controllers/renew", f.door(messages.DoorRenew))
		rs.on("POST", "/v1/controllers/session", f.door(messages.DoorSession))
		rs.on("POST", "/v1/controllers/retire", f.door(messages.DoorRetire))
	}
	if p.Runs != nil {
		rs.on("POST", "/v1/controllers/runs/admit", runDoor(f.admitRun))
		rs.on("POST", "/v1/controllers/runs/attempt", runDoor(f.attemptRun))
		rs.on("POST", "/v1/controllers/runs/operate", runDoor(f.operateRun))
		rs.on("POST", "/v1/controllers/runs/revoke", runDoor(f.revokeOwnRun))
		rs.on("POST", "/v1/runs/bind", endpoint{serve: f.bindCaller, queued: true, proves: true, media: []string{mediaJSON}})
	}
	return f
}

// serverMetadata is the document of RFC 8414. Its issuer is the URL it is found
// under, as that demands.
func (f *Face) serverMetadata(_ context.Context, c *call) error {
	url := f.public.URL()
	c.w.Header().Set("Cache-Control", keysFresh)
	c.json(http.StatusOK, map[string]any{
		"issuer":                                url,
		"token_endpoint":                        url + "/oauth2/token",
		"jwks_uri":                              url + "/jwks",
		"response_types_supported":              []string{},
		"grant_types_supported":                 []string{grantTypeExchange},
		"token_endpoint_auth_methods_supported": []string{"none"},
	})
	return nil
}

// mesh is all that a client needs to get in.
func (f *Face) mesh(_ context.Context, c *call) error {
	url := f.public.URL()
	c.w.Header().Set("Cache-Control", keysFresh)
	c.json(http.StatusOK, map[string]string{
		"space":          f.config.Space,
		"nats_url":       f.public.NATSURL,
		"sentinel_creds": f.public.Sentinel,
		"exchange_url":   url + "/exchange",
		"token_endpoint": url + "/oauth2/token",
		"jwks_uri":       url + "/jwks",
		"idp_issuer":     f.public.ProviderIssuer,
	})
	return nil
}
