package admin

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

const (
	// readWithin and writeWithin bound one read and one write, repetitions included.
	readWithin  = 5 * time.Second
	writeWithin = 10 * time.Second
	// awaitGrace is how much later than asked for the desk's word may come.
	awaitGrace = 2 * time.Second
)

// authority asks the plane's actors. All of it may be asked twice.
type authority struct{ reader, writer, desk supervisor.Ref }

// Read and the rest are rail.Authority.
func (a authority) Read(ctx context.Context, m messages.ReadAuthority) (messages.Authority, error) {
	return client.Repeat[messages.Authority](ctx, a.reader, m, readWithin, client.Passes)
}

func (a authority) Retire(ctx context.Context, m messages.AskRetirement) (messages.RetirementAsked, error) {
	asked, err := client.Repeat[messages.RetirementAsked](ctx, a.writer, m, writeWithin, client.Passes)
	return asked, client.Unsaid(err)
}

// Await outlasts the desk's lives: a fence takes it away for a moment. Who does not
// wait only reads.
func (a authority) Await(ctx context.Context, id string, until time.Time) (messages.OperationProgress, error) {
	wait := time.Until(until)
	if wait <= 0 {
		return client.Repeat[messages.OperationProgress](ctx, a.desk, messages.ReadOperation{ID: id}, readWithin, client.Passes)
	}
	within := wait + awaitGrace
	return client.Repeat[messages.OperationProgress](ctx, a.desk, messages.AwaitOperation{ID: id, Deadline: until}, within, client.Passes)
}
