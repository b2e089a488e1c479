package retirement

import (
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/barrier"
	"github.com/cotal-ai/authplane/actors/claim"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/operation"
	"github.com/cotal-ai/authplane/actors/scanner"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// operationSpec describes the actor of one operation. It lives until the operation is
// done or cannot go on; the desk decides when it is tried again. Its gate was shut by the
// time that is given.
func operationSpec(id string, shut time.Time, config Config) supervisor.Spec {
	return supervisor.Spec{Name: id, Restart: supervisor.Never, New: func(life *supervisor.Life) actor.Actor {
		return &work{life: life, config: config, id: id, shut: shut}
	}}
}

// progress tells the desk how far an operation is.
type progress messages.OperationProgress

// ended tells the desk that an operation's actor ends, and whether the operation is done.
type ended struct {
	op  messages.Operation
	err error
}

// work is one life of an operation's actor.
type work struct {
	life   *supervisor.Life
	config Config
	id     string
	shut   time.Time
}

// Receive runs the operation. When it is closed before, the operation stops between
// two steps and stays owed.
func (w *work) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *supervisor.Open:
		w.life.Opened()
		w.life.Go("run", w.run)
	case *supervisor.Drain:
		w.life.Drained(nil)
	case *supervisor.Close:
		w.life.ClosedWith(nil)
	}
}

func (w *work) run(ctx context.Context) {
	w.config.coming.add(w.id)
	defer w.config.coming.over(w.id)
	ports := portsOf(w.life, w.config)
	ports.Evictor = eviction{w.life.Ref(sweeperOf(w.config.Path)), w.config.evictWithin(), w.shut}
	ports.Tell = func(p messages.OperationProgress) {
		if p.Step != messages.StepBegun && p.Step != messages.StepRevoked {
			w.config.coming.over(w.id) // it is past its eviction
		}
		w.tell(progress(p))
	}
	op, err := operation.Run(ctx, ports, w.id)
	if op.ID == "" {
		op.ID = w.id // not even read
	}
	if ctx.Err() != nil {
		return
	}
	w.tell(ended{op, err})
	w.life.ClosedWith(nil)
}

// tell is heard or not: the desk also looks by itself.
func (w *work) tell(what any) { _ = supervisor.Tell(w.life.Ref(DeskOf(w.config.Path)), what) }

// portsOf are the actors that an operation is run by, but for who evicts.
func portsOf(life *supervisor.Life, config Config) operation.Ports {
	store := ledger.NewStore(barrier.Over(life.Ref(config.Barrier)), ledger.DefaultPatience())
	return operation.Ports{
		Records:   ledger.NewBarrier(store, ledger.Options{}),
		Lane:      lane{life.Ref(config.Claim)},
		Scanner:   enumerator{life.Ref(config.Claim), config.LedgerScanner},
		Frontiers: frontiers{life.Ref(config.Barrier)},
		Drainer:   config.Drainer,
	}
}

// lane writes through the claim.
type lane struct{ claim supervisor.Ref }

// Write is operation.Lane.
func (l lane) Write(ctx context.Context, step ledger.Step) (uint64, error) {
	answer, err := ask[claim.Written](ctx, writeWithin, l.claim, claim.WriteStep{Step: step})
	return answer.Revision, err
}

// enumerator scans through the claim, which guards it.
type enumerator struct {
	claim   supervisor.Ref
	scanner string
}

// Scan is ledger.Scanner.
func (e enumerator) Scan(ctx context.Context, what ledger.Scan) ([]ledger.Row, error) {
	answer, err := ask[scanner.Rows](ctx, scanWithin, e.claim, claim.Enumerate{Scanner: e.scanner, Ask: what})
	return answer.Rows, err
}

// eviction asks the sweeper.
type eviction struct {
	sweeper supervisor.Ref
	within  time.Duration
	// shut is when the gate was, at the latest: earlier than when the operation could begin
	// to run, if it is one of a crowd.
	shut time.Time
}

// Evict is operation.Evictor.
func (e eviction) Evict(ctx context.Context, op messages.Operation, denied time.Time) (operation.Evicted, error) {
	if e.shut.Before(denied) {
		denied = e.shut
	}
	answer, err := ask[evicted](ctx, e.within, e.sweeper, evictTarget{
		target: messages.Target{Principal: op.Principal, UID: op.UID}, denied: denied, of: op,
	})
	return operation.Evicted{Kicked: answer.Evicted, Vacuous: answer.Vacuous, How: answer.Eviction, Servers: answer.Servers}, err
}

// renewal asks the sweeper.
type renewal struct {
	sweeper supervisor.Ref
	within  time.Duration
}

// Renew is operation.Renewer. Services of the infrastructure are no principals, and
// none of them is connected as one.
func (r renewal) Renew(ctx context.Context, principals []messages.Principal) (int, error) {
	people := slices.DeleteFunc(slices.Clone(principals), func(p messages.Principal) bool { return p.Owner == names.LocalOwner })
	if len(people) == 0 {
		return 0, nil
	}
	answer, err := ask[renewed](ctx, r.within, r.sweeper, renew{people})
	return answer.dropped, err
}

// frontiers asks the barrier, who sees both streams.
type frontiers struct{ barrier supervisor.Ref }

// Frontiers is operation.Frontiers.
func (f frontiers) Frontiers(ctx context.Context) (map[string]uint64, error) {
	answer, err := ask[barrier.Ends](ctx, writeWithin, f.barrier, barrier.ReadEnds{})
	return answer.Streams, err
}
