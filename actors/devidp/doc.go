// Package devidp is an identity provider for development: an OpenID Connect
// provider on a loopback port that believes everybody. Whoever can reach the port
// gets a token for any subject they name; it must never stand beside anything that
// matters, and nothing but the dev command and tests may start it.
//
// It speaks the standard (discovery, JWKS, authorization code with PKCE, device
// flow) so that clients and the verification of tokens run as they do against a
// real provider, and beside it answers POST /dev/token, which skips the browser.
//
// What may come in: the provider itself and the leaf that keeps it alive. What may
// not: anything that the service needs when a real provider is configured.
//
// Files: server.go (what is permanent), run.go (one time it serves), actor.go (the
// leaf), keys.go, storage.go and its request.go and device.go (what the protocol
// library asks for), login.go (the pages), token.go (the shortcut).
package devidp
