package evict

import (
	"context"
	"slices"

	"github.com/cotal-ai/authplane/messages"
)

// Anew drops the connections that the targets have, and returns when it is proved that
// none of them is left. Whoever comes back meanwhile was judged by what stands since
// the freeze, and is none of them: so somebody who lost one of his credentials keeps
// what his others are good for. It fails as Run does.
func Anew(ctx context.Context, ports Ports, ask Ask, tell func(Progress)) (Outcome, error) {
	ports.Company = nil
	r, err := begin(ports, ask, tell)
	if err != nil {
		return Outcome{}, err
	}
	err = r.renew(ctx)
	return r.outcome(err == nil), err
}

// renew waits until nobody is let in any more on a decision from before the freeze,
// takes whoever is there then for old, and drops them.
func (r *run) renew(ctx context.Context) error {
	for {
		if err := r.meet(ctx); err != nil {
			return err
		}
		swept, err := r.look(ctx)
		if err != nil {
			return err
		}
		if len(swept.Doubts) == 0 && r.allAwaited(swept.Servers) {
			return r.dropOld(ctx, swept.Connections)
		}
		if len(swept.Doubts) > 0 {
			if err := r.giveUp(swept); err != nil {
				return err
			}
		}
		if err := pause(ctx, gap); err != nil {
			return err
		}
	}
}

// dropOld drops connections until two sweeps on end show none of them.
func (r *run) dropOld(ctx context.Context, old []messages.LiveConnection) error {
	was := make(map[messages.ConnectionRef]bool, len(old))
	for _, c := range old {
		was[c.ConnectionRef] = true
	}
	left := old
	for clean := 0; clean < 2; {
		if err := r.drop(ctx, left); err != nil {
			return err
		}
		if err := pause(ctx, gap); err != nil {
			return err
		}
		swept, err := r.look(ctx)
		if err != nil {
			return err
		}
		if !r.allAwaited(swept.Servers) {
			return r.renew(ctx) // a server that nobody has waited for
		}
		swept.Connections = slices.DeleteFunc(swept.Connections, func(c messages.LiveConnection) bool { return !was[c.ConnectionRef] })
		left = swept.Connections
		if clean++; len(left) > 0 || len(swept.Doubts) > 0 {
			clean = 0
			if err := r.giveUp(swept); err != nil {
				return err
			}
		}
	}
	r.eviction = messages.EvictionSwept
	return nil
}
