package face

import (
	"context"
	"net/http"
	"strings"
	"unicode"

	"github.com/cotal-ai/authplane/messages"
)

// maxServerName bounds the name of a server that is to be forgotten, in bytes.
const maxServerName = 256

// roster answers GET /v1/roster: the servers that were ever met.
func (f *Face) roster(ctx context.Context, c *call) error {
	return c.servers(f.config.Operations.Roster(ctx))
}

// forgetServer answers DELETE /v1/roster/{name} with the servers that are left.
func (f *Face) forgetServer(ctx context.Context, c *call) error {
	name := c.parts["name"]
	if len(name) > maxServerName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return messages.Malformed.Because("the name of a server is at most %d bytes of printable text", maxServerName)
	}
	return c.servers(f.config.Operations.ForgetServer(ctx, messages.ForgetServer{Name: name}))
}

func (c *call) servers(known messages.KnownServers, err error) error {
	if err != nil {
		return err
	}
	c.json(http.StatusOK, map[string]any{"servers": listed(known.Names)})
	return nil
}
