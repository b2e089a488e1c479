package presence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
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
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const longEnough = 20 * time.Second

func instance(letter string) string {
	var out string
	for range 26 {
		out += letter
	}
	return out
}

// stage is a broker for a few processes.
type stage struct {
	testing.TB
	m        *trust.Material
	dir, url string
}

func newStage(t testing.TB) *stage {
	space := natsdtest.NewSpace(t, "acme")
	return &stage{TB: t, m: space.Material, dir: space.Dir, url: space.URL()}
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) dialer() *broker.Dialer {
	s.Helper()
	d, err := broker.NewDialer(broker.Config{URL: s.url, Space: "acme", Material: s.m, Logger: slog.New(slog.DiscardHandler)})
	s.must(err)
	return d
}

func (s *stage) dial(role broker.Role) *broker.Conn {
	s.Helper()
	c, err := s.dialer().Dial(s.Context(), role, func(*broker.Conn) error { return nil })
	s.must(err)
	s.Cleanup(func() { c.Sever(); <-c.Ended() })
	return c
}

// victim is a connection of some process that does not come back by itself.
func (s *stage) victim() (messages.ConnectionRef, <-chan nats.Status) {
	s.Helper()
	nc := natsdtest.Connect(s, s.url, s.m, trust.CTRL, natsdtest.Everything(), nats.NoReconnect())
	cid, err := nc.GetClientID()
	s.must(err)
	return messages.ConnectionRef{ServerID: nc.ConnectedServerId(), ClientID: cid}, nc.StatusChanged(nats.CLOSED)
}

// process is one process of the space, as far as presence goes.
type process struct {
	*stage
	tree *supervisor.Tree
}

// start starts a process that has these connections. kicker is its evictor.
func (s *stage) start(letter string, kicker supervisor.Spec, has ...messages.ConnectionRef) *process {
	s.Helper()
	return s.startWith(letter, kicker, nil, has...)
}

// startWith starts one with responders also.
func (s *stage) startWith(letter string, kicker supervisor.Spec, responders []supervisor.Spec, has ...messages.ConnectionRef) *process {
	s.Helper()
	var paths []string
	for _, r := range responders {
		paths = append(paths, r.Name)
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	s.Cleanup(system.Shutdown)
	tree, err := supervisor.Start(s.Context(), system, supervisor.Spec{Name: "space", Group: &supervisor.Group{Children: append(responders,
		kicker,
		Spec(Config{Dialer: s.dialer(), Space: "acme", Instance: instance(letter), Evictor: "evictor", Responders: paths,
			Connections: func() []messages.ConnectionRef { return has }}),
	)}})
	s.must(err)
	p := &process{stage: s, tree: tree}
	s.Cleanup(func() { s.must(tree.Close(context.Background())) })
	return p
}

func (s *stage) evictor() supervisor.Spec { return evictor.Spec(evictor.Config{Dialer: s.dialer()}) }

// hears waits until the process hears exactly these.
func (p *process) hears(want ...string) {
	p.Helper()
	natsdtest.Eventually(p.TB, "it hears "+fmt.Sprint(want), func() error {
		var got []string
		for _, peer := range p.peers() {
			got = append(got, peer.Instance[:1])
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
}

func (p *process) peers() []messages.Peer {
	p.Helper()
	ref, _ := p.tree.Ref("presence")
	ctx, cancel := context.WithTimeout(p.Context(), longEnough)
	defer cancel()
	peers, err := client.Ask[messages.Peers](ctx, ref, messages.ListPeers{})
	if err != nil && !errors.Is(err, messages.ActorAway) {
		p.Fatal(err)
	}
	return peers.Items
}

// ghost is a process that speaks as long as a test wants it to, and has no more.
type ghost struct {
	*stage
	conn  *broker.Conn
	table *Table
	name  string
}

func (s *stage) ghost(letter string) *ghost {
	return &ghost{stage: s, conn: s.dial(broker.Presence(instance(letter))), table: NewTable(instance(letter), "x", time.Now), name: instance(letter)}
}

func (g *ghost) publish(word []byte, err error) {
	g.Helper()
	g.must(err)
	g.must(g.conn.NATS().Publish(broker.PresenceSubject("acme", g.name), word))
	g.must(g.conn.NATS().Flush())
}

func TestWhoFallsSilentLosesItsConnections(t *testing.T) {
	s := newStage(t)
	mine, mineClosed := s.victim()
	its, closed := s.victim()
	a := s.start("a", s.evictor(), mine)
	b := s.start("b", s.evictor(), mine)
	a.hears("a", "b")
	ghost := s.ghost("g")
	ghost.publish(ghost.table.Say([]messages.ConnectionRef{its}))
	last := time.Now()
	a.hears("a", "b", "g")
	select {
	case <-closed:
	case <-time.After(longEnough):
		t.Fatal("it was never kicked")
	}
	took := time.Since(last)
	t.Logf("kicked %v after its last word", took)
	if took < silence {
		t.Errorf("it was kicked %v after its last word", took)
	}
	natsdtest.Eventually(t, "it shows when", func() error {
		for _, peer := range a.peers() {
			if peer.Instance == ghost.name && peer.Kicked.IsZero() {
				return errors.New("not yet")
			}
		}
		return nil
	})
	// Those that live are left alone.
	a.hears("a", "b", "g")
	b.hears("a", "b", "g")
	select {
	case <-mineClosed:
		t.Error("the living were kicked")
	default:
	}
}

func TestWhoClosesIsNotKicked(t *testing.T) {
	s := newStage(t)
	kicks := make(chan messages.KickConnections, 16) // more than any test makes
	a := s.start("a", recorder(kicks))
	its, closed := s.victim()
	b := s.start("b", s.evictor(), its)
	a.hears("a", "b")
	s.must(b.tree.Close(t.Context()))
	// A third one that falls silent without a word shows that a would have kicked.
	ghost := s.ghost("g")
	third := messages.ConnectionRef{ServerID: its.ServerID, ClientID: 1 << 40}
	ghost.publish(ghost.table.Say([]messages.ConnectionRef{third}))
	select {
	case kick := <-kicks:
		if !slices.Equal(kick.Connections, []messages.ConnectionRef{third}) {
			t.Errorf("kicked %+v", kick)
		}
	case <-time.After(longEnough):
		t.Fatal("nobody was kicked")
	}
	select {
	case <-closed:
		t.Error("it was kicked although it said goodbye")
	default:
	}
}

// recorder is an evictor that only notes what it is asked.
func recorder(kicks chan<- messages.KickConnections) supervisor.Spec {
	return supervisor.Spec{Name: "evictor", New: func(life *supervisor.Life) actor.Actor {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *supervisor.Open:
				life.Opened()
			case *supervisor.Drain:
				life.Drained(nil)
			case *supervisor.Close:
				life.ClosedWith(nil)
			case messages.KickConnections:
				kicks <- m
				ctx.Respond(messages.Kicked{})
			}
		})
	}}
}

// absent is an evictor that dies at the first two questions.
type absent struct {
	mu    sync.Mutex
	asked int
	kicks chan messages.KickConnections
}

func (a *absent) spec() supervisor.Spec {
	spec := recorder(a.kicks)
	works := spec.New
	spec.New = func(life *supervisor.Life) actor.Actor {
		inner := works(life)
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if _, kick := ctx.Message().(messages.KickConnections); kick {
				a.mu.Lock()
				a.asked++
				broken := a.asked < 3
				a.mu.Unlock()
				if broken {
					panic("it dies")
				}
			}
			inner.Receive(ctx)
		})
	}
	return spec
}

func TestAKickSurvivesTheDeathOfTheEvictor(t *testing.T) {
	s := newStage(t)
	broken := &absent{kicks: make(chan messages.KickConnections, 16)}
	a := s.start("a", broken.spec())
	a.hears("a")
	ghost := s.ghost("g")
	its := messages.ConnectionRef{ServerID: a.peersServer(), ClientID: 1 << 40}
	ghost.publish(ghost.table.Say([]messages.ConnectionRef{its}))
	select {
	case kick := <-broken.kicks:
		if !slices.Equal(kick.Connections, []messages.ConnectionRef{its}) {
			t.Errorf("kicked %+v", kick)
		}
	case <-time.After(longEnough):
		t.Error("it was never kicked")
	}
}

func (p *process) peersServer() string { return p.dial(broker.Evictor()).ServerID() }

// Whatever kills presence, it is back before anybody takes it for silent, and
// blames nobody for what it has not heard meanwhile.
func TestPresenceComesBack(t *testing.T) {
	s := newStage(t)
	kicks := make(chan messages.KickConnections, 16)
	a, b := s.start("a", recorder(kicks)), s.start("b", recorder(kicks))
	a.hears("a", "b")
	for _, how := range []supervisor.How{supervisor.Panic, supervisor.Stop, supervisor.Disconnect} {
		killed, err := a.tree.Kill("presence", how)
		s.must(err)
		natsdtest.Eventually(t, "it is back", func() error {
			for _, node := range a.tree.Snapshot() {
				if node.Path == "presence" && node.Generation > killed.Generation && node.State == supervisor.StateOpen {
					return nil
				}
			}
			return errors.New("not yet")
		})
		a.hears("a", "b")
		b.hears("a", "b")
	}
	if len(kicks) > 0 {
		t.Errorf("somebody was kicked: %+v", <-kicks)
	}
}
