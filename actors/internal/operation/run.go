package operation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// revokedAtOnce bounds the credentials revoked in one batch.
	revokedAtOnce = 200
	// drainPasses bounds how often work is drained before that counts as not done.
	drainPasses = 4
)

// Run takes the operation of that id to its end and returns it as it is recorded
// then. An error leaves it where it is, to be run again; the operation is as far as it
// is known then.
func Run(ctx context.Context, ports Ports, id string) (messages.Operation, error) {
	if ports.Now == nil {
		ports.Now = time.Now
	}
	if ports.Tell == nil {
		ports.Tell = func(messages.OperationProgress) {}
	}
	r := &run{Ports: ports, began: ports.Now()}
	for {
		op, err := r.Records.Operation(ctx, id)
		if err != nil {
			return op, err
		}
		r.fromStart = r.fromStart || op.Step == messages.StepBegun
		step := r.step(op)
		if step == nil {
			return op, nil
		}
		if err := step(ctx, op); err != nil {
			return op, fmt.Errorf("%s of %s after %q: %w", op.Kind, op.Principal, op.Step, err)
		}
	}
}

// run is one call of Run.
type run struct {
	Ports
	// began is when it began; the operation's gate was shut by then.
	began time.Time
	// fromStart says that this call has taken the operation from its first step.
	fromStart bool
}

// step is what comes next; nil when nothing does.
func (r *run) step(op messages.Operation) func(context.Context, messages.Operation) error {
	switch op.Step {
	case messages.StepBegun:
		return r.revoke
	case messages.StepRevoked:
		return r.evict
	case messages.StepEvicted:
		if op.Kind == messages.Retirement {
			return r.drain
		}
		return r.commitTakeover
	case messages.StepDrained:
		return r.commitRetirement
	default:
		return nil
	}
}

// revoke revokes every credential of the incarnation. The enumeration counts only if
// it has seen the head as it was frozen: nothing was minted after.
func (r *run) revoke(ctx context.Context, op messages.Operation) error {
	r.tell(op, "enumerating credentials", 0, 0)
	frozen, err := r.Records.Frozen(ctx, op)
	if err != nil {
		return err
	}
	rows, err := r.enumerate(ctx, ledger.CredentialsOf(op.UID), frozen)
	if err != nil {
		return err
	}
	if err := r.inBatches(rows, func(some []ledger.Row, done int) error {
		r.tell(op, "revoking credentials", done, len(rows))
		return r.land(ctx, func(ctx context.Context) (ledger.Step, error) { return r.Records.RevokeFamily(ctx, op, some) })
	}); err != nil {
		return err
	}
	op.Outcome.Revoked = len(rows)
	return r.advance(ctx, op, messages.StepRevoked)
}

// enumerate reads every row that matches, by a scan that has seen the milestone.
func (r *run) enumerate(ctx context.Context, filter string, seen ledger.Milestone) ([]ledger.Row, error) {
	rows, err := r.Scanner.Scan(ctx, ledger.Scan{Filter: filter, Milestone: seen})
	return slices.DeleteFunc(rows, func(row ledger.Row) bool { return !ledger.Matches(filter, row.Key) }), err
}

// inBatches does something with as many rows at a time as one batch may hold; done
// counts those before.
func (r *run) inBatches(rows []ledger.Row, do func(some []ledger.Row, done int) error) error {
	for done := 0; done < len(rows); done += revokedAtOnce {
		if err := do(rows[done:min(done+revokedAtOnce, len(rows))], done); err != nil {
			return err
		}
	}
	return nil
}

// evict has everybody dropped who is connected as the incarnation.
func (r *run) evict(ctx context.Context, op messages.Operation) error {
	r.tell(op, "evicting", 0, 0)
	evicted, err := r.Evictor.Evict(ctx, op, r.began)
	if err != nil {
		return err
	}
	// Whoever resumes does not know whom an earlier try has dropped.
	op.Outcome.Evicted, op.Outcome.Vacuous = evicted.Kicked, evicted.Vacuous && r.fromStart
	op.Outcome.Eviction, op.Outcome.Servers = evicted.How, evicted.Servers
	return r.advance(ctx, op, messages.StepEvicted)
}

// drain has the accepted work ended, and reads for itself whether any is left.
func (r *run) drain(ctx context.Context, op messages.Operation) error {
	if r.Drainer == nil {
		return r.advance(ctx, op, messages.StepDrained)
	}
	var left []string
	for pass := range drainPasses {
		r.tell(op, "draining accepted work", pass, drainPasses)
		if err := r.Drainer.Drain(ctx, op); err != nil {
			return err
		}
		var err error
		if left, err = r.Drainer.Left(ctx, op); err != nil {
			return err
		}
		if len(left) == 0 {
			return r.advance(ctx, op, messages.StepDrained)
		}
	}
	return messages.DrainUnproved.Because("left: %s", strings.Join(left, ", "))
}

func (r *run) commitTakeover(ctx context.Context, op messages.Operation) error {
	r.tell(op, "committing", 0, 0)
	return r.land(ctx, func(ctx context.Context) (ledger.Step, error) { return r.Records.CommitTakeover(ctx, op) })
}

// commitRetirement cuts off: what the streams hold by now is all there ever was.
func (r *run) commitRetirement(ctx context.Context, op messages.Operation) error {
	r.tell(op, "committing", 0, 0)
	frontiers, err := r.Frontiers.Frontiers(ctx)
	if err != nil {
		return err
	}
	return r.land(ctx, func(ctx context.Context) (ledger.Step, error) { return r.Records.CommitRetirement(ctx, op, frontiers) })
}

func (r *run) advance(ctx context.Context, op messages.Operation, to messages.OperationStep) error {
	return r.land(ctx, func(ctx context.Context) (ledger.Step, error) { return r.Records.Advance(ctx, op, to) })
}

// land lands a step; one that is done already is left.
func (r *run) land(ctx context.Context, step func(context.Context) (ledger.Step, error)) error {
	_, err := r.Records.Land(ctx, r.Lane, step)
	return err
}

func (r *run) tell(op messages.Operation, doing string, done, total int) {
	r.Tell(messages.OperationProgress{Operation: op, Doing: doing, Done: done, Total: total})
}
