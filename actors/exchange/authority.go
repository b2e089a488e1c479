package exchange

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

const (
	// readWithin is how long a read is repeated while the reader restarts or proves
	// itself; most restarts are over long before.
	readWithin = 5 * time.Second
	// writeWithin bounds one write, repetitions included.
	writeWithin = 10 * time.Second
)

// authority asks the plane's actors on behalf of the faces. What may be done twice
// is repeated while somebody may yet answer it: reads, enrolling, revoking. Other
// writes are repeated only if the writer never saw them; when it did and did not
// answer, nobody here can tell whether they were made.
type authority struct{ reader, writer supervisor.Ref }

// Read, Grants and the rest are face.Authority.
func (a authority) Read(ctx context.Context, m messages.ReadAuthority) (messages.Authority, error) {
	return read[messages.Authority](ctx, a.reader, m)
}

func (a authority) Grants(ctx context.Context) (messages.Grants, error) {
	return read[messages.Grants](ctx, a.reader, messages.ListGrants{})
}

func (a authority) PutGrant(ctx context.Context, m messages.PutGrant) (messages.GrantWritten, error) {
	return write[messages.GrantWritten](ctx, a.writer, m, client.Unseen)
}

func (a authority) EditGrant(ctx context.Context, m messages.EditGrant) (messages.GrantWritten, error) {
	return write[messages.GrantWritten](ctx, a.writer, m, client.Unseen)
}

func (a authority) RevokeGrant(ctx context.Context, m messages.RevokeGrant) (messages.GrantWritten, error) {
	return write[messages.GrantWritten](ctx, a.writer, m, client.Passes)
}

func (a authority) Enrol(ctx context.Context, m messages.Enrol) (messages.Enrolled, error) {
	return write[messages.Enrolled](ctx, a.writer, m, client.Passes)
}

func read[T any](ctx context.Context, to supervisor.Ref, m any) (T, error) {
	return client.Repeat[T](ctx, to, m, readWithin, client.Passes)
}

func write[T any](ctx context.Context, to supervisor.Ref, m any, again func(error) bool) (T, error) {
	answer, err := client.Repeat[T](ctx, to, m, writeWithin, again)
	return answer, client.Unsaid(err)
}
