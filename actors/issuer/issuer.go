// Package issuer is the actor whose connection may issue to registered instances of
// services. It stands ready beside the others, so that nobody waits for it, and may
// write nothing that they may not see.
package issuer

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/supervisor"
)

// Config is what the issuer needs.
type Config struct {
	Dialer *broker.Dialer
	// Instance names this process.
	Instance string
}

// Spec describes the issuer as a child.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{
		Name: "issuer",
		New: func(life *supervisor.Life) actor.Actor {
			return &issuer{client.New(life, config.Dialer, broker.Issuer(config.Instance), broker.Use{})}
		},
	}
}

// issuer is one life.
type issuer struct{ *client.Client }

// Receive has no requests of its own yet.
func (i *issuer) Receive(ctx actor.Context) { i.Client.Receive(ctx.Message()) }
