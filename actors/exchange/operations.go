package exchange

import (
	"context"
	"slices"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// awaitGrace is how much later than asked for the desk's word on an operation may
// come.
const awaitGrace = 2 * time.Second

// operations asks the writer, which any process may, and the desk of the plane's
// operations. What is asked for twice is done once: a retirement derives its id from
// its incarnation, a takeover has the id that it was asked for with.
type operations struct{ writer, desk, observer supervisor.Ref }

// Retire and the rest are face.Operations.
func (o operations) Retire(ctx context.Context, m messages.AskRetirement) (messages.RetirementAsked, error) {
	return write[messages.RetirementAsked](ctx, o.writer, m, client.Passes)
}

func (o operations) BeginTakeover(ctx context.Context, m messages.BeginTakeover) (messages.OperationProgress, error) {
	return write[messages.OperationProgress](ctx, o.desk, m, client.Passes)
}

func (o operations) Operation(ctx context.Context, id string) (messages.OperationProgress, error) {
	return read[messages.OperationProgress](ctx, o.desk, messages.ReadOperation{ID: id})
}

func (o operations) Operations(ctx context.Context) (messages.Operations, error) {
	return read[messages.Operations](ctx, o.desk, messages.ListOperations{})
}

// Await outlasts the desk's lives: a fence takes it away for a moment. Who does not
// wait only reads.
func (o operations) Await(ctx context.Context, id string, until time.Time) (messages.OperationProgress, error) {
	wait := time.Until(until)
	if wait <= 0 {
		return o.Operation(ctx, id)
	}
	within := wait + awaitGrace
	return client.Repeat[messages.OperationProgress](ctx, o.desk, messages.AwaitOperation{ID: id, Deadline: until}, within, client.Passes)
}

func (o operations) Roster(ctx context.Context) (messages.KnownServers, error) {
	return read[messages.KnownServers](ctx, o.writer, messages.ReadRoster{})
}

// ForgetServer looks first whether the server lives: it would be met again, and until
// then be missing from proofs that it belongs in.
func (o operations) ForgetServer(ctx context.Context, m messages.ForgetServer) (messages.KnownServers, error) {
	seen, err := read[messages.Roster](ctx, o.observer, messages.ObserveServers{Known: []string{m.Name}})
	if err != nil {
		return messages.KnownServers{}, err
	}
	if slices.ContainsFunc(seen.Servers, func(s messages.Server) bool { return s.Name == m.Name && s.ID != "" }) {
		return messages.KnownServers{}, messages.ServerAnswers
	}
	return write[messages.KnownServers](ctx, o.writer, m, client.Unseen)
}
