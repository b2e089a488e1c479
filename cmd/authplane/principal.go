package main

import (
	"net/url"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// exampleOwner is an owner of the right form for the examples of the help.
const exampleOwner = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa"

// parsePrincipal splits `owner/actor`, or the dotted form. Whether both parts are
// well formed is for the service to say.
func parsePrincipal(text string) (messages.Principal, error) {
	owner, actor, ok := strings.Cut(text, "/")
	if !ok {
		owner, actor, ok = strings.Cut(text, ".")
	}
	if !ok || owner == "" || actor == "" {
		return messages.Principal{}, usage("%q is not owner/actor", text)
	}
	return messages.Principal{Owner: owner, Actor: actor}, nil
}

// slashed is how principals are written on a command line.
func slashed(p messages.Principal) string { return p.Owner + "/" + p.Actor }

// grantPath is where a principal's grant lies on the loopback face.
func grantPath(p messages.Principal) string {
	return "/v1/grants/" + url.PathEscape(p.Owner) + "/" + url.PathEscape(p.Actor)
}
