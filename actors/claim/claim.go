package claim

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/barrier"
	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/scanner"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// askAgain is how long a refusal that waiting does not mend stands before the claim
// is tried again all the same: an operator may have mended it.
const askAgain = 5 * time.Second

// guardEvery is how often the claim is looked at without a nudge, which may be lost
// with the connection that would have heard it.
const guardEvery = 5 * time.Second

// Config is what the claim needs.
type Config struct {
	// Paths of the actors that are asked; without an Evictor nobody is kicked.
	Barrier, LedgerScanner, RecordsScanner, Observer, Evictor string
	// Tells are the paths of those who are told when the plane is held.
	Tells []string
	// Instance and Machine say to operators who holds the plane.
	Instance, Machine string
	// Run remembers what this process claimed, over all lives of its actors.
	Run *claim.Run
	// View shows how it stands.
	View *View
	// NoStandby makes a plane that another process holds a failure to open.
	NoStandby bool
	// ServersLost are servers that the operator gave up for good.
	ServersLost []string
}

// Spec describes the claim as a child. Its death fences the plane; what it claimed it
// gives back at the end, however it stands then.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{
		Name: "claim", Restart: supervisor.Fence, Owes: true, OpenWithin: 15 * time.Second,
		New: func(life *supervisor.Life) actor.Actor { return newHolder(life, config) },
	}
}

// Enumerate asks for a whole enumeration by the scanner at a path, under the claim.
// Answered by scanner.Rows; refused with ClaimFenced while this process does not
// hold the plane.
type Enumerate struct {
	Scanner string
	Ask     ledger.Scan
}

// WriteStep asks for a step of a barrier, through the holder's one lane. Answered by
// Written; refused as claim.Lane says.
type WriteStep struct{ Step claim.Step }

// Written answers WriteStep with the revision of the step's last row.
type Written struct{ Revision uint64 }

// ReadOwed asks what the plane has begun and not done. Answered by messages.Owed;
// refused with ClaimFenced while this process does not hold the plane.
type ReadOwed struct{}

var errNotHeld = messages.ClaimFenced.Because("this process does not hold the plane")

// holder is one life.
type holder struct {
	life   *supervisor.Life
	config Config
	// nudge asks the waiting to look again, and the holding to guard; capacity 1, one
	// hint is enough.
	nudge chan struct{}
	// stop ends the claiming, and ended is closed when it has ended.
	stop  context.CancelFunc
	ended chan struct{}
	held  atomic.Pointer[claim.Held] // nil until it is won
}

func newHolder(life *supervisor.Life, config Config) *holder {
	return &holder{life: life, config: config, nudge: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Receive answers Enumerate, WriteStep and ReadOwed.
func (h *holder) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *supervisor.Open:
		h.open()
	case messages.PlaneChanged:
		select {
		case h.nudge <- struct{}{}:
		default:
		}
	case Enumerate:
		h.under(ctx.Sender(), "enumerate "+m.Ask.Filter, func(ctx context.Context, held *claim.Held) (any, error) {
			rows, err := held.Enumerate(ctx, remote{h.life.Ref(m.Scanner), held.Claim().ID}, m.Ask)
			return scanner.Rows{Rows: rows}, err
		})
	case WriteStep:
		h.under(ctx.Sender(), "write a step", func(ctx context.Context, held *claim.Held) (any, error) {
			revision, err := held.Lane().Write(ctx, m.Step)
			return Written{revision}, err
		})
	case ReadOwed:
		h.under(ctx.Sender(), "read what is owed", func(ctx context.Context, held *claim.Held) (any, error) {
			return held.Lane().Owed(ctx)
		})
	case *supervisor.Drain:
		h.life.Drained(nil)
	case *supervisor.Close:
		h.close(m)
	}
}

func (h *holder) open() {
	h.config.View.reopened()
	var ctx context.Context
	ctx, h.stop = context.WithCancel(h.life.Context())
	h.life.Go("claim", func(context.Context) {
		defer close(h.ended)
		h.claim(ctx)
	})
	if !h.config.NoStandby {
		h.life.Opened()
	}
}

// claim wins the plane, however long it takes, and guards it then.
func (h *holder) claim(ctx context.Context) {
	config, err := h.terms(ctx)
	if err == nil {
		var held *claim.Held
		if held, err = h.acquire(ctx, config); err == nil {
			h.hold(ctx, held)
			return
		}
	}
	if ctx.Err() == nil {
		h.fail(err)
	}
}

// fail ends the life. An actor or a broker that is away is waited for; whatever else
// keeps a process from the plane that may not stand by is its failure.
func (h *holder) fail(err error) {
	if errors.Is(err, messages.ActorAway) || errors.Is(err, messages.BrokerAway) {
		err = supervisor.Outage(err)
	}
	h.life.Fail(err)
}

// terms asks the scanners for the connections that the claim will name.
func (h *holder) terms(ctx context.Context) (claim.Config, error) {
	first, err := client.Ask[messages.ConnectionTuple](ctx, h.life.Ref(h.config.LedgerScanner), messages.GetConnection{})
	if err != nil {
		return claim.Config{}, err
	}
	second, err := client.Ask[messages.ConnectionTuple](ctx, h.life.Ref(h.config.RecordsScanner), messages.GetConnection{})
	if err != nil {
		return claim.Config{}, err
	}
	return claim.Config{
		Store:  h.store(),
		Oracle: oracle{h.life.Ref(h.config.Observer), h.config.ServersLost},
		Run:    h.config.Run, Ledger: first, Records: second,
		Host:        hostOf(h.config.Instance, h.config.Machine),
		ServersLost: h.config.ServersLost,
	}, nil
}

// store is the authority stream as the barrier reaches it.
func (h *holder) store() *ledger.Store {
	return ledger.NewStore(barrier.Over(h.life.Ref(h.config.Barrier)), ledger.DefaultPatience())
}

// acquire claims at once or not at all for who may not stand by, and otherwise for
// as long as ctx lasts.
func (h *holder) acquire(ctx context.Context, config claim.Config) (*claim.Held, error) {
	if h.config.NoStandby && h.life.Generation() == 1 {
		held, err := claim.Acquire(ctx, config)
		if err != nil && ctx.Err() == nil {
			h.life.Log().Warn("the plane is refused", "error", claim.Told(err))
		}
		return held, err
	}
	for {
		held, err := claim.Await(ctx, config, h.nudge, h.config.View.waits)
		if err == nil || ctx.Err() != nil {
			return held, err
		}
		h.config.View.refused(err)
		h.life.Log().Warn("the plane is refused", "error", err, "next", messages.Describe(err).Next)
		select {
		case <-ctx.Done():
		case <-h.nudge:
		case <-time.After(askAgain):
		}
	}
}

// hold uses the plane until it is fenced or ctx ends.
func (h *holder) hold(ctx context.Context, held *claim.Held) {
	h.held.Store(held)
	h.config.View.won(held.Claim())
	for _, path := range []string{h.config.LedgerScanner, h.config.RecordsScanner} {
		if err := supervisor.Tell(h.life.Ref(path), messages.ActivateScanner{ClaimID: held.Claim().ID}); err != nil {
			h.fail(messages.ActorAway.From(err))
			return
		}
	}
	if h.config.NoStandby {
		h.life.Opened()
	}
	for _, path := range h.config.Tells {
		_ = supervisor.Tell(h.life.Ref(path), messages.PlaneHeld{ClaimID: held.Claim().ID}) // they also ask by themselves
	}
	h.life.Log().Info("holds the plane", "claim", held.Claim().Generation)
	h.kick(ctx, held.Former())
	look := time.NewTicker(guardEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-held.Fenced():
			h.life.Fence(held.Reason())
			return
		case <-h.nudge:
		case <-look.C:
		}
		_ = held.Guard(ctx) // it fences if the claim has moved; without an answer it does nothing
	}
}

// kick has the connections of a claim dropped that was superseded. Whoever used
// them lands nothing any more; this only ends them sooner.
func (h *holder) kick(ctx context.Context, former messages.Claim) {
	if former.State != messages.ClaimHeld || h.config.Evictor == "" {
		return
	}
	kick := messages.KickConnections{}
	for _, t := range []messages.ConnectionTuple{former.Ledger, former.Records} {
		kick.Connections = append(kick.Connections, messages.ConnectionRef{ServerID: t.ServerID, ClientID: t.ClientID})
	}
	if _, err := client.Ask[messages.Kicked](ctx, h.life.Ref(h.config.Evictor), kick); err != nil && ctx.Err() == nil {
		h.life.Log().Warn("the former holder's connections were not kicked", "error", err)
	}
}

// under does something that only the holder may, beside Receive.
func (h *holder) under(to *actor.PID, name string, do func(context.Context, *claim.Held) (any, error)) {
	held := h.held.Load()
	if held == nil {
		h.life.Reply(to, errNotHeld)
		return
	}
	h.life.Go(name, func(ctx context.Context) {
		answer, err := do(ctx, held)
		if err != nil {
			answer = err
		}
		h.life.Reply(to, answer)
	})
}

// close gives the plane back, unless it is only fenced: the next life takes it again.
// A life that was never opened closes for those before it.
func (h *holder) close(m *supervisor.Close) {
	if h.stop != nil {
		h.stop()
	}
	opened := h.stop != nil
	h.life.Go("release", func(ctx context.Context) {
		if opened {
			<-h.ended
		}
		held := h.held.Load()
		if m.Why != supervisor.Fencing {
			h.life.ClosedWith(h.release(ctx, held, m))
			return
		}
		h.config.View.fenced(m.Cause)
		if held != nil {
			held.Fence(m.Cause)
		}
		h.life.ClosedWith(nil)
	})
}

// release gives the plane back: what this life holds, or else what an earlier one
// left behind. Without an answer it may be tried again; any other refusal stands, and
// is told once.
func (h *holder) release(ctx context.Context, held *claim.Held, m *supervisor.Close) error {
	left := time.Until(m.Deadline) // a quarter of which is for saying that it was not enough
	ctx, cancel := context.WithTimeout(ctx, left*3/4)
	defer cancel()
	var err error
	if held != nil {
		err = held.Release(ctx)
	} else {
		err = h.config.Run.Release(ctx, h.store())
	}
	if errors.Is(err, messages.ReleaseUnreachable) {
		return err
	}
	h.config.View.closed() // by this process it is held no more, whoever else holds it
	if err != nil {
		return supervisor.Terminal(err)
	}
	return nil
}
