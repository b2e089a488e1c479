package devbroker

import (
	"context"
	"errors"

	"github.com/cotal-ai/authplane/actors/keep"
	"github.com/cotal-ai/authplane/supervisor"
)

var errEnded = errors.New("the development broker has ended")

// Spec describes the leaf that keeps server running under a name: after a death it
// listens at the same address and has the same streams.
func Spec(name string, server *Server) supervisor.Spec {
	start := func(ctx context.Context) (keep.Run, error) { return server.Start(ctx) }
	return keep.Spec(keep.Config{Name: name, Label: label, Start: start, Gone: errEnded})
}
