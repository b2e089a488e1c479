package face

import (
	"context"
	"time"

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

// Operations ends incarnations, tells how far that is, and knows the servers that
// must prove it. It is safe for concurrent use.
type Operations interface {
	// Retire returns when the retirement is durable, whoever is to do it.
	Retire(context.Context, messages.AskRetirement) (messages.RetirementAsked, error)
	// BeginTakeover returns when it is begun.
	BeginTakeover(context.Context, messages.BeginTakeover) (messages.OperationProgress, error)
	// Operation tells one operation by its id, whether it is over or not.
	Operation(ctx context.Context, id string) (messages.OperationProgress, error)
	// Operations lists what is owed, in the order in which it began.
	Operations(context.Context) (messages.Operations, error)
	// Await returns once the operation is over, or with what is known of it then; it is
	// refused with OperationNotFound when there is none by then.
	Await(ctx context.Context, id string, until time.Time) (messages.OperationProgress, error)
	// Roster lists the servers that were ever met.
	Roster(context.Context) (messages.KnownServers, error)
	// ForgetServer takes out one that is gone for good; it is refused with ServerUnknown,
	// or with ServerAnswers.
	ForgetServer(context.Context, messages.ForgetServer) (messages.KnownServers, error)
}

// Instances registers processes of services' instances, shows the gates, and repairs
// one. It is safe for concurrent use.
type Instances interface {
	// Instances lists the gates of an endpoint, or of all.
	Instances(context.Context, messages.ListInstances) (messages.Instances, error)
	// ObserveGate reads one gate, as it is now.
	ObserveGate(ctx context.Context, endpoint, instance string) (messages.Instance, error)
	// AwaitFence returns when the process of an epoch counts no more, with the gate that
	// says so; a zero one was never there. It waits over outages, until ctx ends.
	AwaitFence(ctx context.Context, endpoint, instance string, epoch uint64) (messages.Instance, error)
	// RegisterHostInstance returns when nothing is left of the former process.
	RegisterHostInstance(ctx context.Context, endpoint, instance string, principal messages.Principal) (messages.InstanceRegistered, error)
	// IssueInstanceCredential returns a bearer of the process of an epoch, as long as that
	// is the one which counts.
	IssueInstanceCredential(ctx context.Context, endpoint, instance string, epoch uint64, lifetime time.Duration) (messages.InstanceCredentialIssued, error)
	// RepairInstance opens a gate that a registration left frozen; it fails unless that
	// was done.
	RepairInstance(ctx context.Context, endpoint, instance string) (messages.InstanceRegistered, error)
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
