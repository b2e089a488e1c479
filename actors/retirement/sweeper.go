package retirement

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/barrier"
	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

func sweeperSpec(config Config) supervisor.Spec {
	return supervisor.Spec{Name: sweeper, New: func(life *supervisor.Life) actor.Actor {
		return &broom{life: life, config: config, tally: map[string]int{}}
	}}
}

// evictTarget asks for the proof that nobody of a target is connected. Answered by
// evicted. The target was denied at the latest when it is sent.
type evictTarget struct {
	target messages.Target
	denied time.Time
	// of is the operation that asks, for who follows it.
	of messages.Operation
}

// evicted answers evictTarget.
type evicted struct{ evict.Outcome }

// renew asks that the connections of principals be judged anew. Answered by renewed.
type renew struct{ principals []messages.Principal }

// renewed answers renew.
type renewed struct{ dropped int }

// broom is one life of the sweeper. It sweeps for everybody who has asked by then;
// those who ask meanwhile join while that may be, and are swept for the next time else.
type broom struct {
	life   *supervisor.Life
	config Config
	line   line
	// busy says that a sweep runs.
	busy bool
	// tally counts what was dropped for an operation in tries that proved nothing. Only
	// the one sweep at a time uses it.
	tally map[string]int
}

type errand struct {
	evictTarget
	to *actor.PID
}

// swept says that a sweep is over.
type swept struct{}

// Receive answers evictTarget and renew.
func (b *broom) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *supervisor.Open:
		b.life.Opened()
	case evictTarget:
		e := errand{m, ctx.Sender()}
		if err := evict.CheckTarget(m.target); err != nil { // it would fail all others with it
			b.config.coming.over(m.of.ID)
			b.life.Reply(e.to, err)
			return
		}
		if b.config.Outlives > 0 {
			b.life.Go("outlive", func(ctx context.Context) { b.outlive(ctx, e) })
			return
		}
		b.line.add(e)
		b.config.coming.over(m.of.ID)
		b.next()
	case renew:
		to := ctx.Sender()
		b.life.Go("judge anew", func(ctx context.Context) { b.renew(ctx, to, m) })
	case swept:
		b.busy = false
		b.next()
	case *supervisor.Drain:
		b.life.Drained(nil)
	case *supervisor.Close:
		b.life.ClosedWith(nil)
	}
}

// next sweeps for everybody who waits, unless there is a sweep already.
func (b *broom) next() {
	if b.busy {
		return
	}
	errands := b.line.take(time.Time{})
	if len(errands) == 0 {
		return
	}
	b.busy = true
	b.life.Go("sweep", func(ctx context.Context) {
		defer b.life.Tell(swept{})
		b.sweep(ctx, &party{b, errands})
	})
}

// sweep proves for all errands at once, and answers each. Whoever is still there keeps
// nobody else waiting: it is proved for the others without him.
func (b *broom) sweep(ctx context.Context, p *party) {
	for len(p.errands) > 0 {
		outcome, err := b.run(ctx, p)
		var unproved *evict.Unproved
		if !errors.As(err, &unproved) || len(unproved.Doubts) > 0 {
			b.answer(p.errands, outcome, err)
			return
		}
		there := func(e errand) bool { return unproved.Concerns(e.target) }
		if !slices.ContainsFunc(p.errands, there) {
			b.answer(p.errands, outcome, err)
			return
		}
		b.answer(slices.DeleteFunc(slices.Clone(p.errands), func(e errand) bool { return !there(e) }), outcome, err)
		p.errands = slices.DeleteFunc(p.errands, there)
	}
}

func (b *broom) answer(errands []errand, outcome evict.Outcome, err error) {
	for _, e := range errands {
		share := outcome.Of(e.target)
		share.Vacuous = share.Vacuous && b.tally[e.of.ID] == 0
		b.tally[e.of.ID] += share.Evicted
		if err != nil {
			b.life.Reply(e.to, err)
			continue
		}
		share.Evicted = b.tally[e.of.ID]
		delete(b.tally, e.of.ID)
		b.life.Reply(e.to, evicted{share})
	}
}

// run proves for all errands at once, and for whoever joins, that nobody is connected.
func (b *broom) run(ctx context.Context, p *party) (evict.Outcome, error) {
	var order evict.Ask
	for _, e := range p.errands {
		order.Targets = append(order.Targets, e.target)
		if e.denied.After(order.Frozen) {
			order.Frozen = e.denied
		}
	}
	return b.by(ctx, evict.Run, p, order, func(how evict.Progress) { b.tell(p.errands, how) })
}

// renew has the connections of principals judged anew.
func (b *broom) renew(ctx context.Context, to *actor.PID, m renew) {
	var order evict.Ask
	for _, p := range m.principals {
		order.Targets = append(order.Targets, messages.Target{Principal: p})
	}
	outcome, err := b.by(ctx, evict.Anew, nil, order, nil)
	if err != nil {
		b.life.Reply(to, err)
		return
	}
	b.life.Reply(to, renewed{outcome.Evicted})
}

// by sweeps by the roster as it is recorded, and records the servers it met.
func (b *broom) by(ctx context.Context, sweep func(context.Context, evict.Ports, evict.Ask, func(evict.Progress)) (evict.Outcome, error),
	with evict.Company, order evict.Ask, tell func(evict.Progress)) (evict.Outcome, error) {
	if b.config.Outlives > 0 { // by the end of it, whoever is connected was judged anew
		return b.outlast(ctx, order, tell)
	}
	store := ledger.NewStore(barrier.Over(b.life.Ref(b.config.Barrier)), ledger.DefaultPatience())
	known, err := ledger.Roster(ctx, store)
	if err != nil {
		return evict.Outcome{}, err
	}
	order.Known, order.Operation, order.Callouts = known, names.NewUID(), b.config.CalloutUsers
	ports := evict.Ports{Servers: servers{b.life, b.config}, Responders: responders{b.life.Ref(b.config.Presence)}, Company: with}
	outcome, err := sweep(ctx, ports, order, tell)
	if len(outcome.Learnt) > 0 {
		_, learnt := ask[messages.KnownServers](ctx, writeWithin, b.life.Ref(b.config.Writer), messages.LearnServers{Names: outcome.Learnt})
		if err == nil {
			err = learnt
		}
	}
	return outcome, err
}

// tell has the desk show how far an eviction is, for each operation that waits for it.
func (b *broom) tell(errands []errand, p evict.Progress) {
	desk := b.life.Ref(DeskOf(b.config.Path))
	for _, e := range errands {
		_ = supervisor.Tell(desk, progress{Operation: e.of, Doing: p.Doing, Done: p.Done, Total: p.Total,
			WaitingFor: p.WaitingFor, Next: p.Next}) // unheard, it is only not shown
	}
}
