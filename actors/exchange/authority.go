package exchange

import (
	"context"
	"errors"
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

	firstPause = 10 * time.Millisecond
	mostPause  = 250 * time.Millisecond
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
	return write[messages.GrantWritten](ctx, a.writer, m, passes)
}

func (a authority) Enrol(ctx context.Context, m messages.Enrol) (messages.Enrolled, error) {
	return write[messages.Enrolled](ctx, a.writer, m, passes)
}

func read[T any](ctx context.Context, to supervisor.Ref, m any) (T, error) {
	return repeat[T](ctx, to, m, readWithin, passes)
}

func write[T any](ctx context.Context, to supervisor.Ref, m any, again func(error) bool) (T, error) {
	answer, err := repeat[T](ctx, to, m, writeWithin, again)
	if errors.Is(err, supervisor.ErrUnanswered) {
		err = messages.OutcomeUnknown.From(err)
	}
	return answer, err
}

// repeat asks again, within the time there is, while the failure is one that again
// allows.
func repeat[T any](ctx context.Context, to supervisor.Ref, m any, within time.Duration, again func(error) bool) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		answer, err := client.Ask[T](ctx, to, m)
		if err == nil || !again(err) || !wait(ctx, pause) {
			return answer, abandoned(ctx, err)
		}
	}
}

// passes reports whether the same question may soon be answered.
func passes(err error) bool {
	return errors.Is(err, messages.ActorAway) || errors.Is(err, messages.Unproved)
}

func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// abandoned gives the reason why nobody waits any more, where that is why there is
// no answer: it is no fault of whoever was asked.
func abandoned(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}
