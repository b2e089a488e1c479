package face

import (
	"context"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

// Authority reads and writes what is recorded. Its errors carry entries of the
// catalogue; it is safe for concurrent use.
type Authority interface {
	// Read tells what a decision about one principal needs.
	Read(context.Context, messages.ReadAuthority) (messages.Authority, error)
	// Grants lists every grant, sorted by owner, then actor.
	Grants(context.Context) (messages.Grants, error)
	PutGrant(context.Context, messages.PutGrant) (messages.GrantWritten, error)
	EditGrant(context.Context, messages.EditGrant) (messages.GrantWritten, error)
	RevokeGrant(context.Context, messages.RevokeGrant) (messages.GrantWritten, error)
	// Enrol returns only when the root credential is durable.
	Enrol(context.Context, messages.Enrol) (messages.Enrolled, error)
}

// Control shows the running service, and injures it where that was allowed. It is
// safe for concurrent use.
type Control interface {
	// Status, Tree and Connections answer from memory and never wait.
	Status() messages.Status
	Tree() []messages.Actor
	Connections() []messages.Connection
	// Denials lists the connects that were not admitted, newest first.
	Denials(context.Context) ([]messages.Denial, error)
	// Events yields what happens from now on until ctx ends, and is then closed.
	Events(ctx context.Context) <-chan messages.Event
	// Kill ends the life of an actor and tells which one it was. It is refused with
	// NoSuchActor, KillInapplicable, or Malformed for an unknown way.
	Kill(ctx context.Context, path, how string) (killed string, generation uint64, err error)
}

// Provider verifies proofs of the one identity provider that is configured.
type Provider interface {
	Verify(ctx context.Context, idToken string) (identity.Subject, error)
}

// Signer signs bearers.
type Signer interface {
	Sign(identity.Bearer) (messages.Secret, error)
}

// KeySet publishes verification keys.
type KeySet interface {
	// JWKS is the JSON Web Key Set document as of now.
	JWKS() []byte
}
