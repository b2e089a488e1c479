package presence

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// lookEvery is how often the table is asked whom to kick.
const lookEvery = 100 * time.Millisecond

// Config is what presence needs.
type Config struct {
	Dialer *broker.Dialer
	Space  string
	// Instance is this process's name among those of the space.
	Instance string
	// Connections lists what others shall drop when this process stands still: its
	// responders' and scanners' connections. It is called four times a second, from
	// any goroutine, and must not block.
	Connections func() []messages.ConnectionRef
	// Expected names a peer that should be there, with connections of it that this
	// process knows of from elsewhere; the empty name for nobody. It is called ten times
	// a second and must not block; nil expects nobody.
	Expected func() (instance string, connections []messages.ConnectionRef)
	// Evictor is the path of the actor that kicks; empty where nobody can: then a peer
	// that falls silent is only told of.
	Evictor string
	// Responders are the paths of the actors that answer connects.
	Responders []string
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Spec describes presence as a child.
func Spec(config Config) supervisor.Spec {
	if config.Now == nil {
		config.Now = time.Now
	}
	return supervisor.Spec{
		Name: "presence",
		New:  func(life *supervisor.Life) actor.Actor { return newPresence(life, config) },
	}
}

// presence is one life.
type presence struct {
	*client.Client
	life    *supervisor.Life
	config  Config
	evictor supervisor.Ref

	settling *settling

	mu    sync.Mutex // words leave in the order they were made
	table *Table
	conn  *broker.Conn // the newest that was proved; nil before the first
	// came is how often conn had come back when that was last looked at.
	came uint64
}

func newPresence(life *supervisor.Life, config Config) *presence {
	p := &presence{
		life: life, config: config, evictor: life.Ref(config.Evictor),
		table: NewTable(config.Instance, names.NewUID(), config.Now), settling: newSettling(),
	}
	p.Client = client.New(life, config.Dialer, broker.Presence(config.Instance), broker.Use{Prove: p.join})
	return p
}

// parting tells the life that it said goodbye, and may close.
type parting struct{ close *supervisor.Close }

// Receive answers ListPeers with Peers, and SettleResponders with Settled.
func (p *presence) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *supervisor.Open:
		p.life.Go("say and look", p.run)
		p.Client.Receive(m)
	case messages.SettleResponders:
		p.Serve(ctx.Sender(), "settle "+m.Operation, func(ctx context.Context, conn *broker.Conn) (any, error) { return p.askAll(ctx, conn, m) })
	case messages.ListPeers:
		p.mu.Lock()
		defer p.mu.Unlock()
		ctx.Respond(messages.Peers{Items: p.table.Peers()})
	case *supervisor.Close:
		p.life.Go("say goodbye", func(context.Context) {
			p.leave()
			p.life.Tell(parting{m})
		})
	case parting:
		p.Client.Receive(m.close)
	default:
		p.Client.Receive(m)
	}
}

// join hears the others over a new connection.
func (p *presence) join(ctx context.Context, conn *broker.Conn) error {
	for subject, hear := range map[string]func(who string, m *nats.Msg){
		broker.PresenceSubject(p.config.Space, "*"): p.hear,
		broker.SettleSubject(p.config.Space, "*"):   func(question string, _ *nats.Msg) { p.hearSettle(conn, question) },
		broker.SettledSubject(p.config.Space, "*"):  func(question string, m *nats.Msg) { p.settling.hear(question, m.Data) },
	} {
		prefix := strings.TrimSuffix(subject, "*")
		if _, err := conn.NATS().Subscribe(subject, func(m *nats.Msg) { hear(strings.TrimPrefix(m.Subject, prefix), m) }); err != nil {
			return err
		}
	}
	if err := conn.NATS().FlushWithContext(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn, p.came = conn, conn.Reconnects()
	p.table.Rejoin()
	return nil
}

func (p *presence) hear(instance string, m *nats.Msg) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table.Hear(instance, m.Data)
}

// run says that this process lives and looks who does not, until the life ends.
func (p *presence) run(ctx context.Context) {
	say, look := time.NewTicker(sayEvery), time.NewTicker(lookEvery)
	defer say.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-say.C:
			p.say()
		case <-look.C:
			for _, kick := range p.due() {
				if p.config.Evictor == "" {
					p.spare(kick)
					continue
				}
				p.life.Go("kick "+kick.Instance, func(ctx context.Context) { p.kick(ctx, kick) })
			}
		}
	}
}

// say publishes the next word. A word that cannot be sent is missed by this process
// as well as by its peers.
func (p *presence) say() {
	connections := p.config.Connections()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		return
	}
	if word, err := p.table.Say(connections); word != nil && err == nil {
		_ = p.conn.NATS().Publish(broker.PresenceSubject(p.config.Space, p.config.Instance), word)
	}
}

// leave publishes the last word; closing the connection brings it to the server.
func (p *presence) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		return
	}
	if word, err := p.table.Leave(); word != nil && err == nil {
		_ = p.conn.NATS().Publish(broker.PresenceSubject(p.config.Space, p.config.Instance), word)
	}
}

func (p *presence) due() []Kick {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		return nil
	}
	if came := p.conn.Reconnects(); came != p.came {
		p.came = came
		p.table.Rejoin()
	}
	if p.config.Expected != nil {
		p.table.Expect(p.config.Expected())
	}
	return p.table.Due()
}

// spare only tells of a peer that fell silent.
func (p *presence) spare(kick Kick) {
	p.life.Log().Warn("a peer fell silent, and nobody can drop its connections here", "peer", kick.Instance, "connections", len(kick.Connections))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table.Spared(kick.Instance)
}

// kickWithin bounds the wait for the evictor and the servers it asks.
const kickWithin = 6 * time.Second

// kick has a silent peer's connections dropped.
func (p *presence) kick(ctx context.Context, kick Kick) {
	ctx, cancel := context.WithTimeout(ctx, kickWithin)
	defer cancel()
	if kick.Unheard && !p.stillUnheard(ctx, kick) {
		return
	}
	kicked, err := client.Ask[messages.Kicked](ctx, p.evictor, messages.KickConnections{Connections: kick.Connections})
	log := p.life.Log().With("peer", kick.Instance, "connections", len(kick.Connections))
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		log.Warn("a silent peer could not be kicked", "error", err)
		p.table.Unasked(kick.Instance)
	case !reached(kicked):
		log.Warn("a peer fell silent, and so did a server when asked to kick it")
		p.table.Silent(kick.Instance)
	default:
		log.Warn("a peer fell silent and was kicked")
	}
}

// stillUnheard makes sure that the servers of a peer which never spoke can be reached,
// and gives it the time to be heard by way of them: a link that was cut, and not the
// peer, may be why it was not. A server that is away makes it due again later.
func (p *presence) stillUnheard(ctx context.Context, kick Kick) bool {
	probe := messages.KickConnections{}
	for _, c := range kick.Connections {
		probe.Connections = append(probe.Connections, messages.ConnectionRef{ServerID: c.ServerID, ClientID: nobody})
	}
	answer, err := client.Ask[messages.Kicked](ctx, p.evictor, probe)
	if err == nil && reached(answer) {
		select {
		case <-time.After(silence):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.table.Unasked(kick.Instance)
	case !reached(answer):
		p.table.Silent(kick.Instance)
	default:
		return !p.table.Heard(kick.Instance)
	}
	return false
}

// nobody is a client id that no server gives.
const nobody = 1 << 62

// reached reports whether nothing is left of what was kicked, by the servers' word.
func reached(kicked messages.Kicked) bool {
	return !slices.ContainsFunc(kicked.Results, func(r messages.KickResult) bool {
		return r.Outcome == messages.KickSilent || r.Outcome == messages.KickRefused
	})
}
