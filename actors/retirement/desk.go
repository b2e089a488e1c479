package retirement

import (
	"context"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/barrier"
	"github.com/cotal-ai/authplane/actors/claim"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// lookEvery is how often the desk looks at what is asked and owed without a nudge,
// which may be lost.
const lookEvery = time.Second

func deskSpec(config Config) supervisor.Spec {
	return supervisor.Spec{Name: desk, New: func(life *supervisor.Life) actor.Actor {
		return newClerk(life, config)
	}}
}

// clerk is one life of the desk.
type clerk struct {
	life    *supervisor.Life
	config  Config
	store   *ledger.Store
	records *ledger.Barrier
	books   *books
	nudge   chan struct{} // capacity 1: one hint is enough
}

func newClerk(life *supervisor.Life, config Config) *clerk {
	store := ledger.NewStore(barrier.Over(life.Ref(config.Barrier)), ledger.DefaultPatience())
	return &clerk{
		life: life, config: config, store: store, records: ledger.NewBarrier(store, ledger.Options{}),
		books: newBooks(time.Now), nudge: make(chan struct{}, 1),
	}
}

// Receive answers BeginTakeover, ReadOperation and AwaitOperation with
// OperationProgress, ListOperations with Operations and RevokeHandle with
// HandleRevoked.
func (c *clerk) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *supervisor.Open:
		c.life.Go("tend", c.tend)
		c.life.Opened()
	case messages.PlaneHeld, messages.RetirementsAsked:
		c.look()
	case progress:
		c.books.tell(messages.OperationProgress(m))
	case ended:
		c.books.ended(m.op, m.err)
		c.look()
	case messages.BeginTakeover:
		c.answer(ctx.Sender(), "begin a takeover", func(ctx context.Context) (any, error) { return c.beginTakeover(ctx, m) })
	case messages.RevokeHandle:
		c.answer(ctx.Sender(), "revoke a handle", func(ctx context.Context) (any, error) { return c.revokeHandle(ctx, m) })
	case messages.ListOperations:
		c.answer(ctx.Sender(), "list operations", func(ctx context.Context) (any, error) { return c.list(ctx) })
	case messages.ReadOperation:
		c.answer(ctx.Sender(), "read an operation", func(ctx context.Context) (any, error) { return c.read(ctx, m.ID) })
	case messages.AwaitOperation:
		c.answer(ctx.Sender(), "await an operation", func(ctx context.Context) (any, error) { return c.await(ctx, m) })
	case *supervisor.Drain:
		c.life.Drained(nil)
	case *supervisor.Close:
		c.life.ClosedWith(nil)
	}
}

// look has the clerk look soon.
func (c *clerk) look() {
	select {
	case c.nudge <- struct{}{}:
	default:
	}
}

// answer works on a question beside Receive.
func (c *clerk) answer(to *actor.PID, name string, do func(context.Context) (any, error)) {
	c.life.Go(name, func(ctx context.Context) {
		answer, err := do(ctx)
		if err != nil {
			answer = err
		}
		c.life.Reply(to, answer)
	})
}

// tend sees to what is asked and owed for as long as the life lasts.
func (c *clerk) tend(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := c.round(ctx); err != nil && ctx.Err() == nil {
			c.books.trouble(c.life.Log(), err)
		}
		c.config.Troubles.set(c.books.troubled())
		select {
		case <-ctx.Done():
			return
		case <-c.nudge:
		case <-tick.C:
		}
	}
}

// round does what there is to do now. What fails is done in a later one. What was asked
// for is taken back last: who waits to be begun is not to wait for that.
func (c *clerk) round(ctx context.Context) error {
	err := c.goOn(ctx)
	return errors.Join(err, c.unask(ctx))
}

// goOn begins what is asked and runs what is owed.
func (c *clerk) goOn(ctx context.Context) error {
	owed, err := ask[messages.Owed](ctx, writeWithin, c.life.Ref(c.config.Claim), claim.ReadOwed{})
	if errors.Is(err, messages.ClaimFenced) || errors.Is(err, messages.ClaimReleased) {
		c.books.closeDown()
		return nil
	}
	if err != nil {
		return err
	}
	begun, err := c.beginAsked(ctx, owed)
	all := append(owed.Ops, begun...)
	c.books.keep(all)
	shut := time.Now() // the gates of all
	for _, id := range all {
		err = errors.Join(err, c.run(ctx, id, shut))
	}
	return err
}

// run sees to it that an operation has an actor, unless it failed a moment ago.
func (c *clerk) run(ctx context.Context, id string, shut time.Time) error {
	if !c.books.due(id) {
		return nil
	}
	added := c.config.coming.add(id)
	_, err := c.life.Add(ctx, c.config.Path, operationSpec(id, shut, c.config))
	if err != nil && added {
		c.config.coming.over(id)
	}
	switch {
	case err == nil:
		c.books.started(id)
	case errors.Is(err, supervisor.ErrExists), errors.Is(err, supervisor.ErrUnavailable), errors.Is(err, supervisor.ErrClosing):
		err = nil // it runs, or may not now
	}
	return err
}
