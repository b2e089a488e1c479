package claim_test

import (
	"context"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/messages"
)

// oracle is claim.Oracle by the servers' own word. A question is put to them after it
// was asked, once for all who had asked it by then: a server verifies the JWT of each
// connection it lists, which ten openers at once would make the most of the race.
type oracle struct {
	observer *sweep.Observer
	account  string

	mu      sync.Mutex
	turns   map[messages.ConnectionTuple]*sync.Mutex // one question at a time
	waiting map[messages.ConnectionTuple]*question   // not put yet
}

type question struct {
	once   sync.Once
	answer messages.Liveness
	err    error
}

// Liveness is claim.Oracle.
func (o *oracle) Liveness(_ context.Context, c messages.ConnectionTuple) (messages.Verdict, string) {
	turn, q := o.join(c)
	turn.Lock()
	defer turn.Unlock()
	q.once.Do(func() {
		o.mu.Lock()
		delete(o.waiting, c)
		o.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), longEnough)
		defer cancel()
		q.answer, q.err = o.observer.Liveness(ctx, o.account, c, nil)
	})
	if q.err != nil {
		return messages.Unknown, q.err.Error()
	}
	return q.answer.Verdict, q.answer.Note
}

func (o *oracle) join(c messages.ConnectionTuple) (*sync.Mutex, *question) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.turns == nil {
		o.turns, o.waiting = map[messages.ConnectionTuple]*sync.Mutex{}, map[messages.ConnectionTuple]*question{}
	}
	if o.turns[c] == nil {
		o.turns[c] = &sync.Mutex{}
	}
	if o.waiting[c] == nil {
		o.waiting[c] = &question{}
	}
	return o.turns[c], o.waiting[c]
}
