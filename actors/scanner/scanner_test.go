package scanner_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/scanner"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const longEnough = 20 * time.Second

// pair is both scanners of a space on a broker, in a group that reopens them.
type pair struct {
	*testing.T
	tree  *supervisor.Tree
	made  chan string // 64: more consumers than a test makes
	admin *nats.Conn
}

func open(t *testing.T) *pair {
	t.Helper()
	space := natsdtest.NewSpace(t, "acme")
	p := &pair{T: t, made: make(chan string, 64)}
	p.admin = natsdtest.Connect(t, space.URL(), space.Material, trust.CTRL, natsdtest.Everything())
	config := stream.Config{Space: "acme", Replicas: 1, Instance: names.NewUID()}
	for _, c := range []stream.Config{config, config.Records()} {
		if _, err := stream.Open(t.Context(), p.admin, c, stream.Installation{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.admin.Subscribe("$JS.EVENT.ADVISORY.CONSUMER.CREATED.>", func(m *nats.Msg) { p.made <- m.Subject }); err != nil {
		t.Fatal(err)
	}
	if err := p.admin.Flush(); err != nil {
		t.Fatal(err)
	}
	dialer, err := broker.NewDialer(broker.Config{URL: space.URL(), Space: "acme", Material: space.Material, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	t.Cleanup(system.Shutdown)
	p.tree, err = supervisor.Start(t.Context(), system, supervisor.Spec{Name: "space", Group: &supervisor.Group{
		Children: []supervisor.Spec{
			scanner.LedgerSpec(scanner.Config{Dialer: dialer, Stream: config}),
			scanner.RecordsSpec(scanner.Config{Dialer: dialer, Stream: config}),
		},
		Fence: supervisor.FencePlan{Reopens: []string{scanner.Ledger, scanner.Records}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.tree.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if open := p.tree.Custody().Open(); len(open) > 0 {
			t.Errorf("open: %+v", open)
		}
	})
	return p
}

func (p *pair) ref(path string) supervisor.Ref {
	p.Helper()
	ref, ok := p.tree.Ref(path)
	if !ok {
		p.Fatalf("no %s", path)
	}
	return ref
}

// scan asks a scanner for everything, under a claim.
func (p *pair) scan(path, claim string) error {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), longEnough)
	defer cancel()
	_, err := client.Ask[scanner.Rows](ctx, p.ref(path), scanner.Scan{ClaimID: claim, Ask: ledger.Scan{Filter: ">"}})
	return err
}

func (p *pair) tuple(path string) messages.ConnectionTuple {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), longEnough)
	defer cancel()
	tuple, err := client.Ask[messages.ConnectionTuple](ctx, p.ref(path), messages.GetConnection{})
	if err != nil {
		p.Fatal(err)
	}
	return tuple
}

func (p *pair) activate(path, claim string) {
	p.Helper()
	if err := supervisor.Tell(p.ref(path), messages.ActivateScanner{ClaimID: claim}); err != nil {
		p.Fatal(err)
	}
}

// refused has every scanner refuse a claim, before it asks the broker anything.
func (p *pair) refused(claim string) {
	p.Helper()
	for _, path := range []string{scanner.Ledger, scanner.Records} {
		if err := p.scan(path, claim); !errors.Is(err, messages.ScanRefused) {
			p.Errorf("%s under the claim %q: %v", path, claim, err)
		}
	}
}

// TestOnlyTheClaimScans has scanners do nothing but under the claim that made them
// active: neither as candidates, nor for another claim, nor in a later life.
func TestOnlyTheClaimScans(t *testing.T) {
	p := open(t)
	p.refused("")
	p.refused("ours")
	for _, path := range []string{scanner.Ledger, scanner.Records} {
		p.activate(path, "ours")
	}
	p.refused("")
	p.refused("another")
	for _, path := range []string{scanner.Ledger, scanner.Records} {
		if err := p.scan(path, "ours"); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	events := p.tree.Events(64)
	defer events.Close()
	if _, err := p.tree.Kill(scanner.Ledger, supervisor.Panic); err != nil {
		t.Fatal(err)
	}
	p.reopened(events)
	p.refused("ours")
	// Everything that was made is known once the server says so of one more.
	p.activate(scanner.Ledger, "last")
	if err := p.scan(scanner.Ledger, "last"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		select {
		case <-p.made:
		case <-time.After(longEnough):
			t.Fatalf("only %d consumers were seen", i)
		}
	}
	if err := p.admin.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(p.made) > 0 {
		t.Errorf("somebody who was refused had %s", <-p.made)
	}
}

// reopened waits until both scanners live again.
func (p *pair) reopened(events *supervisor.Subscription) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), longEnough)
	defer cancel()
	for again := map[string]bool{}; len(again) < 2; {
		event, err := events.Next(ctx)
		if err != nil {
			p.Fatal(err)
		}
		if opened, ok := event.(supervisor.Opened); ok && opened.Generation > 1 {
			again[opened.Path] = true
		}
	}
}

// TestALostConnectionIsADeath cuts the connection of each scanner: both are opened
// anew, on connections that are not the ones a claim may have named.
func TestALostConnectionIsADeath(t *testing.T) {
	for _, path := range []string{scanner.Ledger, scanner.Records} {
		t.Run(path, func(t *testing.T) {
			p := open(t)
			ledgers, records := p.tuple(scanner.Ledger), p.tuple(scanner.Records)
			if ledgers.User == "" || ledgers.User == records.User || ledgers.ClientID == records.ClientID {
				t.Fatalf("they are %+v and %+v", ledgers, records)
			}
			events := p.tree.Events(64)
			defer events.Close()
			if _, err := p.tree.Kill(path, supervisor.Disconnect); err != nil {
				t.Fatal(err)
			}
			p.reopened(events)
			if again := p.tuple(scanner.Ledger); again.User == ledgers.User || again.ClientID == ledgers.ClientID {
				t.Errorf("the ledger's came back as %+v", again)
			}
			if again := p.tuple(scanner.Records); again.User == records.User || again.ClientID == records.ClientID {
				t.Errorf("the records' came back as %+v", again)
			}
		})
	}
}
