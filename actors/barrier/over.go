package barrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// What Over asks the actor, and what it answers.
type (
	get struct {
		key    string
		latest bool // of whoever leads, and of nobody else
	}
	got struct {
		row   ledger.Row
		found bool
	}
	list struct {
		filter string
		latest bool
	}
	listed      struct{ keys []string }
	send        struct{ batch ledger.Batch }
	sent        struct{ revision uint64 }
	proveLeader struct{}
	synced      struct{}
)

// Over is the authority stream as the barrier behind ref reaches it. It is safe for
// concurrent use.
func Over(ref supervisor.Ref) ledger.Backend { return &over{ref: ref} }

type over struct {
	ref    supervisor.Ref
	synced stream.Synced
}

// Get and the rest are ledger.Backend.
func (o *over) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	answer, err := supervisor.Ask[got](ctx, o.ref, get{key, o.synced.Lately()})
	return answer.row, answer.found, away(err)
}

func (o *over) List(ctx context.Context, filter string) ([]string, error) {
	answer, err := supervisor.Ask[listed](ctx, o.ref, list{filter, o.synced.Lately()})
	return answer.keys, away(err)
}

func (o *over) Sync(ctx context.Context) error {
	_, err := supervisor.Ask[synced](ctx, o.ref, proveLeader{})
	if err == nil {
		o.synced.Now()
	}
	return away(err)
}

func (o *over) Send(ctx context.Context, batch ledger.Batch) (uint64, error) {
	answer, err := supervisor.Ask[sent](ctx, o.ref, send{batch})
	switch {
	case err == nil:
		return answer.revision, nil
	case errors.Is(err, supervisor.ErrUnanswered), errors.Is(ctx.Err(), context.Canceled):
		return 0, fmt.Errorf("%w: %w", ledger.ErrUnknown, err)
	case unreachable(err):
		return 0, fmt.Errorf("%w: %w", ledger.ErrNotApplied, err)
	}
	return 0, err
}

// away says of a barrier that is between two lives what is said of a broker that
// is: ask again.
func away(err error) error {
	if unreachable(err) {
		return messages.BrokerAway.From(err)
	}
	return err
}

func unreachable(err error) bool {
	return errors.Is(err, supervisor.ErrUnavailable) || errors.Is(err, supervisor.ErrOverloaded)
}
