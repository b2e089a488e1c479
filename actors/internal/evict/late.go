package evict

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// lateGrace is for a server that starts its own clock only after it has asked for a
// decision, and looks at it only when it gets to.
const lateGrace = 100 * time.Millisecond

// lateUntil is when no server lets anybody in any more on a decision that rests on
// what was read before the freeze: each drops who is not decided in time.
func (r *run) lateUntil(roster messages.Roster) time.Time {
	return r.ask.Frozen.Add(r.patience(roster))
}

// patience is how long after a freeze that is.
func (r *run) patience(roster messages.Roster) time.Duration {
	patience := time.Duration(0)
	for _, s := range roster.Servers {
		if s.AuthTimeout <= 0 {
			patience = max(patience, r.ask.AuthTimeout)
		}
		patience = max(patience, s.AuthTimeout)
	}
	if patience == 0 {
		patience = r.ask.AuthTimeout
	}
	return patience + lateGrace
}

// late returns when late decisions are over: at once when the responders say so, and
// otherwise at that time. Only where there is one server is their word enough: what
// they have answered it has heard. In a cluster an answer and a sweep take different
// routes, and the sweep may be faster.
func (r *run) late(ctx context.Context, roster messages.Roster, until time.Time) error {
	r.tell(r.progress("waits until connects that had begun are over"))
	if sweep.Single(roster) && r.settled(ctx, roster.Servers[0], until) {
		return nil
	}
	return pause(ctx, time.Until(until))
}

// settled asks the responders, and reports whether every connection that a connect may
// be answered over has settled. What cannot be told in time is not.
func (r *run) settled(ctx context.Context, server messages.Server, until time.Time) bool {
	if r.ports.Responders == nil || len(r.ask.Callouts) == 0 {
		return false
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var holders []messages.Target
	for _, key := range r.ask.Callouts {
		holders = append(holders, messages.Target{User: key})
	}
	// It is read after the freeze: who comes later decides on what was frozen.
	swept, err := r.ports.Servers.Sweep(ctx, messages.SweepConnections{Account: string(trust.AUTH), Known: r.names(), Targets: holders})
	if err != nil || len(swept.Doubts) > 0 || len(swept.Servers) != 1 || swept.Servers[0].ID != server.ID {
		return false
	}
	if len(swept.Connections) == 0 {
		return true // nobody is left who could answer
	}
	open := map[messages.ConnectionRef]bool{}
	ask := messages.SettleResponders{Operation: r.ask.Operation}
	for _, c := range swept.Connections {
		open[c.ConnectionRef] = true
		ask.Await = append(ask.Await, c.ConnectionRef)
	}
	said, err := r.ports.Responders.Settle(ctx, ask)
	if err != nil {
		return false
	}
	for _, c := range said.Connections {
		delete(open, c)
	}
	return len(open) == 0
}
