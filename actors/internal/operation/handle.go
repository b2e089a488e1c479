package operation

import (
	"context"
	"fmt"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Renewer has connections judged anew.
type Renewer interface {
	// Renew returns once none of the connections that the principals had is left, nor
	// one that was admitted by a decision from before the call, and how many were
	// dropped. It fails with messages.EvictionUnproved while that is not proved.
	Renew(ctx context.Context, principals []messages.Principal) (dropped int, err error)
}

// RevokeHandle ends a handle and everything derived from it. It has no record of its
// own: the gate of the handle is shut for ever, and whoever asks again finishes what
// was not done.
func RevokeHandle(ctx context.Context, ports Ports, renewer Renewer, h ledger.Handle) (messages.HandleRevoked, error) {
	r := &run{Ports: ports}
	done, err := r.revokeHandle(ctx, renewer, h)
	if err != nil {
		return done, fmt.Errorf("revoke handle %s: %w", h, err)
	}
	return done, nil
}

func (r *run) revokeHandle(ctx context.Context, renewer Renewer, h ledger.Handle) (done messages.HandleRevoked, err error) {
	if err := r.land(ctx, func(ctx context.Context) (ledger.Step, error) { return r.Records.FreezeHandle(ctx, h) }); err != nil {
		return done, err
	}
	frozen, err := r.Records.FrozenHandle(ctx, h)
	if err != nil {
		return done, err
	}
	rows, err := r.enumerate(ctx, ledger.LineageOf(h), frozen)
	if err != nil {
		return done, err
	}
	if err := r.inBatches(rows, func(some []ledger.Row, _ int) error {
		return r.land(ctx, func(ctx context.Context) (ledger.Step, error) { return r.Records.RevokeLineage(ctx, some) })
	}); err != nil {
		return done, err
	}
	named, err := r.Records.Lineage(ctx, rows)
	if err != nil {
		return done, err
	}
	done.Revoked = len(named)
	if done.Holders, err = r.Records.Holders(ctx, named); err != nil || len(done.Holders) == 0 {
		return done, err
	}
	done.Dropped, err = renewer.Renew(ctx, done.Holders)
	return done, err
}
