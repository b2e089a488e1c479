package observer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/observer"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// startOwn is an observer without a way into the system account.
func startOwn(t *testing.T, dir, url string) *pair {
	t.Helper()
	m, err := trust.LoadWithoutSystem(t.Context(), trust.Directory(trust.SecretsDir(dir)), "acme")
	if err != nil {
		t.Fatal(err)
	}
	dialer, err := broker.NewDialer(broker.Config{URL: url, Space: "acme", Material: m, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	t.Cleanup(system.Shutdown)
	tree, err := supervisor.Start(t.Context(), system, supervisor.Spec{Name: "space", Group: &supervisor.Group{Children: []supervisor.Spec{
		observer.Spec(observer.Config{Dialer: dialer, Account: m.Account, NoSystem: true}),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &pair{t, m, tree}
}

// tuple is how the claim would name a connection that was just made to CTRL.
func (p *pair) tuple(url, server string) (tuple messages.ConnectionTuple, gone func()) {
	p.Helper()
	nc, name := p.client(url, trust.CTRL)
	return messages.ConnectionTuple{ServerName: server, ServerID: name.ServerID, ClientID: name.ClientID, User: "U"}, nc.Close
}

func (p *pair) lives(tuple messages.ConnectionTuple, lost ...string) messages.Liveness {
	p.Helper()
	return asked[messages.Liveness](p, "observer", messages.AskLiveness{Connection: tuple, Lost: lost})
}

func TestLivenessWithoutSystem(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	p := startOwn(t, space.Dir, space.URL())
	tuple, leave := p.tuple(space.URL(), space.Server.Name())
	if l := p.lives(tuple); l.Verdict != messages.Live {
		t.Errorf("got %+v", l)
	}
	leave()
	natsdtest.Eventually(t, "it is gone", func() error {
		if l := p.lives(tuple); l.Verdict != messages.Gone {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
	// What belongs to the system account is refused, and says why.
	if _, err := ask[messages.Roster](p, "observer", messages.ObserveServers{}); !errors.Is(err, messages.SystemAbsent) {
		t.Errorf("who the servers are: %v", err)
	}
	for _, account := range []string{"DATA", "CTRL", "AUTH"} {
		if _, err := ask[messages.Swept](p, "observer", messages.SweepConnections{Account: account}); !errors.Is(err, messages.SystemAbsent) {
			t.Errorf("a sweep of %s: %v", account, err)
		}
	}
}

// In a cluster nobody says who is missing: a holder whose server does not answer is
// unknown until its server is back, or was given up.
func TestLivenessInAClusterWithoutSystem(t *testing.T) {
	dir := natsdtest.Chain(t, "acme")
	group := natsdtest.Cluster(t, dir, 3)
	p := startOwn(t, dir, group.Server(0).URL())
	there := group.Server(2)
	tuple, leave := p.tuple(there.URL(), there.Name())
	natsdtest.Eventually(t, "its server lists it", func() error {
		if l := p.lives(tuple); l.Verdict != messages.Live {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
	leave()
	natsdtest.Eventually(t, "its server lists it no more", func() error {
		if l := p.lives(tuple); l.Verdict != messages.Gone {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
	tuple, _ = p.tuple(there.URL(), there.Name())
	if err := there.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	natsdtest.Eventually(t, "nobody can tell", func() error {
		if l := p.lives(tuple); l.Verdict != messages.Unknown || !strings.Contains(l.Note, "--server-lost "+tuple.ServerName) {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
	if l := p.lives(tuple, tuple.ServerName); l.Verdict != messages.Gone {
		t.Errorf("its server was given up: %+v", l)
	}
	if err := group.Start(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	natsdtest.Eventually(t, "its server is back", func() error {
		if l := p.lives(tuple); l.Verdict != messages.Gone {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
}
