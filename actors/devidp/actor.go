package devidp

import (
	"context"
	"errors"

	"github.com/cotal-ai/authplane/actors/keep"
	"github.com/cotal-ai/authplane/supervisor"
)

var errEnded = errors.New("the listener is gone")

// Spec describes the leaf that keeps server serving under a name: after a death it binds
// the same address and signs with the same key, and has forgotten the logins under way.
func Spec(name string, server *Server) supervisor.Spec {
	start := func(ctx context.Context) (keep.Run, error) { return server.Start(ctx) }
	return keep.Spec(keep.Config{Name: name, Label: label, Start: start, Gone: errEnded})
}
