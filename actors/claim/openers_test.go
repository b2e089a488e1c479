package claim_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

const (
	longEnough = 20 * time.Second
	openers    = 10
)

// ground is a broker with the two streams, and everything that races on it.
type ground struct {
	*testing.T
	space  *natsdtest.Space
	dialer *broker.Dialer
	admin  *nats.Conn
	js     jetstream.JetStream
	watch  *watch
	oracle *oracle
}

func newGround(t *testing.T) *ground {
	space := natsdtest.NewSpace(t, "acme")
	dialer, err := broker.NewDialer(broker.Config{URL: space.URL(), Space: "acme", Material: space.Material, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{T: t, space: space, dialer: dialer, watch: newWatch(t, space.Material, space.URL())}
	g.admin = natsdtest.Connect(t, space.URL(), space.Material, trust.CTRL, natsdtest.Everything())
	if g.js, err = jetstream.New(g.admin); err != nil {
		t.Fatal(err)
	}
	watcher := g.conn(broker.Observer())
	t.Cleanup(func() { sever(watcher) })
	g.oracle = &oracle{observer: sweep.NewObserver(watcher.NATS(), 0), account: space.Material.Account(trust.CTRL)}
	g.open(config(names.NewUID()).Records())
	return g
}

func config(instance string) stream.Config {
	return stream.Config{Space: "acme", Replicas: 1, Instance: instance}
}

func (g *ground) open(c stream.Config) {
	g.Helper()
	if _, err := stream.Open(g.Context(), g.admin, c, stream.Installation{}); err != nil {
		g.Fatal(err)
	}
}

// virgin makes the authority stream anew: nobody ever claimed.
func (g *ground) virgin() {
	g.Helper()
	authority := config(names.NewUID())
	natsdtest.Eventually(g, "an authority stream without a row", func() error {
		if err := g.js.DeleteStream(g.Context(), authority.Name()); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			g.Fatal(err)
		}
		g.open(authority)
		made, err := g.js.Stream(g.Context(), authority.Name())
		if err != nil {
			g.Fatal(err)
		}
		// A server with much to do may find rows of the deleted stream on its disk, and
		// make the new one with them.
		if state := made.CachedInfo().State; state.Msgs > 0 || state.LastSeq > 0 {
			return fmt.Errorf("it was made with %d rows, up to %d", state.Msgs, state.LastSeq)
		}
		return nil
	})
}

// conn is a connection of ours in a role, until it is severed.
func (g *ground) conn(role broker.Role) *broker.Conn {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.Context(), longEnough)
	defer cancel()
	c, err := g.dialer.Dial(ctx, role, func(*broker.Conn) error { return nil })
	if err != nil {
		g.Fatal(err)
	}
	return c
}

func sever(conns ...*broker.Conn) {
	for _, c := range conns {
		c.Sever()
		<-c.Ended()
	}
}

// opener is what a process brings to the race: the barrier's connection, over which
// it claims, and two scanners that have done nothing yet.
type opener struct {
	*ground
	stream          stream.Config
	barrier         *broker.Conn
	ledger, records *broker.Conn
}

func (g *ground) opener() *opener {
	o := &opener{ground: g, stream: config(names.NewUID())}
	o.barrier = g.conn(broker.Barrier(o.stream.Instance))
	o.reopen()
	g.Cleanup(func() { sever(o.barrier, o.ledger, o.records) })
	return o
}

// reopen opens the scanners' connections.
func (o *opener) reopen() {
	o.ledger, o.records = o.conn(broker.LedgerScanner()), o.conn(broker.RecordsScanner())
}

// die ends the scanners' connections, as the end of the process would.
func (o *opener) die() { sever(o.ledger, o.records) }

func (o *opener) tuples() (ledger, records messages.ConnectionTuple) {
	ledger, first := o.ledger.Tuple()
	records, second := o.records.Tuple()
	if !first || !second {
		o.Error("a connection without a name")
	}
	return ledger, records
}

// race claims once, as a process does that has just started, and uses what it won.
func (o *opener) race(ctx context.Context) (*claim.Held, error) {
	first, second := o.tuples()
	backend := stream.New(o.barrier.NATS(), o.stream, stream.NewLanes(1))
	held, err := claim.Acquire(ctx, claim.Config{Store: ledger.NewStore(backend, ledger.DefaultPatience()), Oracle: o.oracle,
		Run: &claim.Run{}, Ledger: first, Records: second, Host: o.stream.Instance})
	if err != nil {
		return nil, err
	}
	for conn, of := range map[*broker.Conn]stream.Config{o.ledger: o.stream, o.records: o.stream.Records()} {
		if _, err := held.Enumerate(ctx, stream.NewScanner(conn.NATS(), of), ledger.Scan{Filter: "plane"}); err != nil {
			o.Errorf("the winner cannot scan: %v", err)
		}
	}
	return held, nil
}

// TestTenOpeners has ten processes claim the plane at the same moment, many times
// over: by turns one that nobody ever held, and one whose holder has died. Each time
// exactly one has it, the others are told so, and whoever did not win never had a
// consumer made.
func TestTenOpeners(t *testing.T) {
	g := newGround(t)
	all := make([]*opener, openers)
	for i := range all {
		all[i] = g.opener()
	}
	var before *opener // who holds
	for round := range rounds {
		if round%2 == 0 {
			g.virgin()
		} else {
			before.die()
			before.reopen()
		}
		before = g.raceOnce(all, uint64(round%2+1))
		if before == nil {
			t.Fatalf("round %d", round)
		}
		if err := g.watch.await(2 * (round + 1)); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	g.seesALoser(all, before)
}

// raceOnce lets everybody go at once, and returns who won.
func (g *ground) raceOnce(all []*opener, generation uint64) *opener {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.Context(), longEnough)
	defer cancel()
	asked := make([]int, len(all))
	for i, o := range all {
		asked[i] = o.asked()
	}
	held, errs := make([]*claim.Held, len(all)), make([]error, len(all))
	var racing sync.WaitGroup
	shot := make(chan struct{})
	for i, o := range all {
		racing.Go(func() { <-shot; held[i], errs[i] = o.race(ctx) })
	}
	close(shot)
	racing.Wait()
	var winner *opener
	for i, o := range all {
		switch {
		case held[i] != nil && winner != nil:
			g.Errorf("two hold the plane")
			return nil
		case held[i] != nil:
			winner = o
			if made := o.asked() - asked[i]; held[i].Claim().Generation != generation || held[i].Guard(ctx) != nil {
				g.Errorf("won generation %d, not %d; consumers %d", held[i].Claim().Generation, generation, made)
			}
		case !errors.Is(errs[i], messages.ClaimLivePeer) && !errors.Is(errs[i], messages.ClaimConcurrent):
			g.Errorf("a loser is told %v", errs[i])
		case o.asked() != asked[i]:
			g.Errorf("a loser had %d consumers made", o.asked()-asked[i])
		}
	}
	if winner == nil {
		g.Errorf("nobody holds the plane: %v", errors.Join(errs...))
	}
	return winner
}

// asked is how many consumers were asked for on its scanners' connections.
func (o *opener) asked() int {
	first, second := o.tuples()
	return o.watch.askedBy(first) + o.watch.askedBy(second)
}

// seesALoser proves that the watch would have seen a loser's consumer, with one.
func (g *ground) seesALoser(all []*opener, winner *opener) {
	g.Helper()
	loser := all[0]
	if loser == winner {
		loser = all[1]
	}
	made, asked := g.watch.totals()
	before := loser.asked()
	if _, err := stream.NewScanner(loser.ledger.NATS(), loser.stream).Scan(g.Context(), ledger.Scan{Filter: "plane"}); err != nil {
		g.Fatal(err)
	}
	if made != asked {
		g.Errorf("%d consumers were made and %d asked for", made, asked)
	}
	if err := g.watch.await(made + 1); err != nil {
		g.Error(err)
	}
	if loser.asked() != before+1 {
		g.Error("the watch does not see who asks")
	}
}
