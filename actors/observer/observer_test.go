package observer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/evictor"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/observer"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const longEnough = 20 * time.Second

// pair is an observer and an evictor on a broker.
type pair struct {
	testing.TB
	m    *trust.Material
	tree *supervisor.Tree
}

func start(t testing.TB, m *trust.Material, url string, tune ...func(*broker.Config)) *pair {
	t.Helper()
	config := broker.Config{URL: url, Space: "acme", Material: m, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range tune {
		f(&config)
	}
	dialer, err := broker.NewDialer(config)
	if err != nil {
		t.Fatal(err)
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	t.Cleanup(system.Shutdown)
	tree, err := supervisor.Start(t.Context(), system, supervisor.Spec{Name: "space", Group: &supervisor.Group{Children: []supervisor.Spec{
		observer.Spec(observer.Config{Dialer: dialer, Account: m.Account}),
		evictor.Spec(evictor.Config{Dialer: dialer}),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if open := tree.Custody().Open(); len(open) > 0 {
			t.Errorf("open: %+v", open)
		}
	})
	return &pair{t, m, tree}
}

func ask[T any](p *pair, path string, message any) (T, error) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), longEnough)
	defer cancel()
	ref, _ := p.tree.Ref(path)
	return client.Ask[T](ctx, ref, message)
}

func asked[T any](p *pair, path string, message any) T {
	p.Helper()
	answer, err := ask[T](p, path, message)
	if err != nil {
		p.Fatal(err)
	}
	return answer
}

// client connects somebody to DATA, and tells who that is.
func (p *pair) client(url string, account trust.Account) (*nats.Conn, messages.ConnectionRef) {
	p.Helper()
	nc := natsdtest.Connect(p, url, p.m, account, natsdtest.Everything(), nats.NoReconnect())
	cid, err := nc.GetClientID()
	if err != nil {
		p.Fatal(err)
	}
	return nc, messages.ConnectionRef{ServerID: nc.ConnectedServerId(), ClientID: cid}
}

func TestObserveSweepKickAndProveGone(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	p := start(t, space.Material, space.URL())
	roster := asked[messages.Roster](p, "observer", messages.ObserveServers{Known: []string{"n7"}})
	if len(roster.Servers) != 2 || len(roster.Doubts) != 1 {
		t.Errorf("got %+v", roster)
	}
	_, name := p.client(space.URL(), trust.DATA)
	swept := asked[messages.Swept](p, "observer", messages.SweepConnections{Account: "DATA"})
	if len(swept.Doubts) > 0 || len(swept.Connections) != 1 || swept.Connections[0].ConnectionRef != name {
		t.Fatalf("got %+v", swept)
	}
	if with := asked[messages.Swept](p, "observer", messages.SweepConnections{Account: "DATA", Known: []string{"n7"}}); len(with.Doubts) == 0 {
		t.Errorf("a known server that is missing leaves no doubt: %+v", with)
	}
	kicked := asked[messages.Kicked](p, "evictor", messages.KickConnections{Connections: []messages.ConnectionRef{name}})
	if len(kicked.Results) != 1 || kicked.Results[0].Outcome != messages.KickDone {
		t.Errorf("got %+v", kicked)
	}
	user := messages.Target{User: swept.Connections[0].User}
	swept = asked[messages.Swept](p, "observer", messages.SweepConnections{Account: "DATA", Targets: []messages.Target{user}})
	if len(swept.Doubts) > 0 || len(swept.Connections) > 0 {
		t.Errorf("it is not gone: %+v", swept)
	}
	for _, account := range []string{"SVC", "SYS", "", "*"} {
		if _, err := ask[messages.Swept](p, "observer", messages.SweepConnections{Account: account}); !errors.Is(err, messages.Malformed) {
			t.Errorf("%q: %v", account, err)
		}
	}
}

func TestLivenessOfAConnection(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	p := start(t, space.Material, space.URL())
	nc, name := p.client(space.URL(), trust.CTRL)
	tuple := messages.ConnectionTuple{ServerName: space.Server.Name(), ServerID: name.ServerID, ClientID: name.ClientID, User: "U"}
	if l := asked[messages.Liveness](p, "observer", messages.AskLiveness{Connection: tuple}); l.Verdict != messages.Live {
		t.Errorf("got %+v", l)
	}
	nc.Close()
	natsdtest.Eventually(t, "it is gone", func() error {
		if l := asked[messages.Liveness](p, "observer", messages.AskLiveness{Connection: tuple}); l.Verdict != messages.Gone {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
	tuple.ServerName, tuple.ServerID = "n7", "N"
	if l := asked[messages.Liveness](p, "observer", messages.AskLiveness{Connection: tuple}); l.Verdict != messages.Unknown {
		t.Errorf("got %+v", l)
	}
	if l := asked[messages.Liveness](p, "observer", messages.AskLiveness{Connection: tuple, Lost: []string{"n7"}}); l.Verdict != messages.Gone {
		t.Errorf("got %+v", l)
	}
}

func TestACluster(t *testing.T) {
	dir := natsdtest.Chain(t, "acme")
	group := natsdtest.Cluster(t, dir, 3)
	p := start(t, natsdtest.Load(t, dir, "acme"), group.Server(0).URL())
	natsdtest.Eventually(t, "all three answer", func() error {
		if r := asked[messages.Roster](p, "observer", messages.ObserveServers{}); len(r.Servers) != 3 || len(r.Doubts) > 0 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	var all []messages.ConnectionRef
	for i := range group.Size() {
		_, name := p.client(group.Server(i).URL(), trust.DATA)
		all = append(all, name)
	}
	natsdtest.Eventually(t, "all are listed", func() error {
		swept := asked[messages.Swept](p, "observer", messages.SweepConnections{Account: "DATA"})
		for _, name := range all {
			if !slices.ContainsFunc(swept.Connections, func(c messages.LiveConnection) bool { return c.ConnectionRef == name }) {
				return fmt.Errorf("%+v is not", name)
			}
		}
		return nil
	})
	for _, r := range asked[messages.Kicked](p, "evictor", messages.KickConnections{Connections: all}).Results {
		if r.Outcome != messages.KickDone {
			t.Errorf("got %+v", r)
		}
	}
	if swept := asked[messages.Swept](p, "observer", messages.SweepConnections{Account: "DATA"}); len(swept.Doubts) > 0 || len(swept.Connections) > 0 {
		t.Errorf("got %+v", swept)
	}
}

func TestBothComeBack(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	p := start(t, space.Material, space.URL())
	for _, path := range []string{"observer", "evictor"} {
		for _, how := range []supervisor.How{supervisor.Panic, supervisor.Stop, supervisor.Disconnect} {
			killed, err := p.tree.Kill(path, how)
			if err != nil {
				t.Fatal(err)
			}
			natsdtest.Eventually(t, path+" answers again", func() error {
				for _, node := range p.tree.Snapshot() {
					if node.Path == path && node.Generation == killed.Generation {
						return errors.New("it lives on")
					}
				}
				var err error
				if path == "observer" {
					_, err = ask[messages.Roster](p, path, messages.ObserveServers{})
				} else {
					_, err = ask[messages.Kicked](p, path, messages.KickConnections{})
				}
				if err != nil && !errors.Is(err, messages.ActorAway) && !errors.Is(err, messages.BrokerAway) {
					t.Errorf("%s is not away: %v", path, err)
				}
				return err
			})
		}
	}
}

// No sweep and no kick fails while the connections are renewed.
func TestRenewals(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	p := start(t, space.Material, space.URL(), func(c *broker.Config) { c.StandingLifetime = 4 * time.Second })
	nobody := messages.KickConnections{Connections: []messages.ConnectionRef{{ServerID: space.Server.ID(), ClientID: 1 << 40}}}
	for renewed := 0; renewed < 2*3; {
		if swept := asked[messages.Swept](p, "observer", messages.SweepConnections{Account: "CTRL"}); len(swept.Doubts) > 0 {
			t.Fatalf("got %+v", swept)
		}
		if kicked := asked[messages.Kicked](p, "evictor", nobody); kicked.Results[0].Outcome != messages.KickAbsent {
			t.Fatalf("got %+v", kicked)
		}
		renewed = 0
		for _, count := range p.tree.Custody().Counts() {
			renewed += int(count.Held) - 1
		}
	}
}
