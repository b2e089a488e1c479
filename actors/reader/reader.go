package reader

import (
	"context"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// openWithin covers the first proof, with three replicas also the first beat.
const openWithin = 15 * time.Second

// Config is what the reader needs.
type Config struct {
	Dialer *broker.Dialer
	// Stream says which authority stream.
	Stream stream.Config
	// Remembered tells which life of the stream is ours.
	Remembered func() stream.Installation
	// Unreadable remembers the rows that could not be read.
	Unreadable *Unreadable
	// Gates hears which gates of instances may have moved.
	Gates *Gates
}

// Spec describes the reader as a child.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{
		Name:       "reader",
		OpenWithin: openWithin,
		New:        func(life *supervisor.Life) actor.Actor { return newReader(life, config) },
	}
}

// reader is one life.
type reader struct {
	*client.Client
	life   *supervisor.Life
	config Config

	mu      sync.Mutex
	proving map[*broker.Conn]*proving // every connection that is proved all the time
}

// proving is the reading of one connection.
type proving struct {
	leader *stream.LeaderReader
	stop   context.CancelFunc
	ended  chan struct{} // closed when nothing of it runs any more
}

func newReader(life *supervisor.Life, config Config) *reader {
	r := &reader{life: life, config: config, proving: map[*broker.Conn]*proving{}}
	role := broker.Reader(config.Stream.Instance)
	r.Client = client.New(life, config.Dialer, role, broker.Use{Prove: r.prove, Retire: r.retire})
	return r
}

// Receive answers each of the reader's messages as that message says, or with an error.
func (r *reader) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.ReadAuthority:
		r.Serve(ctx.Sender(), "read "+m.Principal.String(), func(ctx context.Context, conn *broker.Conn) (any, error) {
			found, err := r.over(conn).Authority(ctx, m)
			if err == nil {
				r.config.Unreadable.read(found)
			}
			r.config.Unreadable.Met(r.life.Log(), ledger.CorruptKeys(err)...)
			return found, err
		})
	case messages.ReadCredential:
		r.Serve(ctx.Sender(), "read a credential of "+m.UID, func(ctx context.Context, conn *broker.Conn) (any, error) {
			found, err := r.over(conn).Credential(ctx, m)
			r.config.Unreadable.Met(r.life.Log(), ledger.CorruptKeys(err)...)
			return found, err
		})
	case messages.ReadProcess:
		r.Serve(ctx.Sender(), "read a process of "+m.Endpoint, func(ctx context.Context, conn *broker.Conn) (any, error) {
			found, err := r.over(conn).Process(ctx, m)
			r.config.Unreadable.Met(r.life.Log(), ledger.CorruptKeys(err)...)
			return found, err
		})
	case messages.ListGrants:
		r.Serve(ctx.Sender(), "list grants", func(ctx context.Context, conn *broker.Conn) (any, error) {
			all, err := r.over(conn).Grants(ctx)
			r.config.Unreadable.listed(all.Items)
			r.config.Unreadable.Met(r.life.Log(), all.Unreadable...)
			return all, err
		})
	case messages.ReadInstance:
		r.Serve(ctx.Sender(), "read instance "+m.Instance+" of "+m.Endpoint, func(ctx context.Context, conn *broker.Conn) (any, error) {
			found, err := r.over(conn).Instance(ctx, m)
			r.config.Unreadable.Met(r.life.Log(), ledger.CorruptKeys(err)...)
			return found, err
		})
	case messages.ListInstances:
		r.Serve(ctx.Sender(), "list instances", func(ctx context.Context, conn *broker.Conn) (any, error) {
			all, err := r.over(conn).Instances(ctx, m)
			r.config.Unreadable.Met(r.life.Log(), all.Unreadable...)
			return all, err
		})
	default:
		r.Client.Receive(m)
	}
}

// over reads over one connection, which was proved before anybody could use it.
func (r *reader) over(conn *broker.Conn) *ledger.Reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ledger.NewReader(r.proving[conn].leader, nil)
}

// prove begins to prove a new connection, all the time from now on, and returns
// when what it reads may be relied on.
func (r *reader) prove(ctx context.Context, conn *broker.Conn) error {
	if err := r.listen(conn); err != nil {
		return err
	}
	changed := make(chan struct{}, 1) // one hint that the state is another is enough
	p := &proving{ended: make(chan struct{})}
	p.leader = stream.NewLeaderReader(conn.NATS(), stream.ReaderConfig{
		Config:     r.config.Stream,
		Remembered: r.config.Remembered(),
		OnChange: func(err error) {
			select {
			case changed <- struct{}{}:
			default:
			}
			if client.Foreign(err) {
				r.Fail(err)
			}
		},
	})
	var running context.Context
	running, p.stop = context.WithCancel(r.life.Context())
	r.life.Go("prove", func(context.Context) {
		defer close(p.ended)
		p.leader.Run(running)
	})
	if err := p.settled(ctx, changed); err != nil {
		p.end()
		return err
	}
	r.config.Gates.nudgeAll() // the proof was answered after the subscription, on the same connection
	r.mu.Lock()
	defer r.mu.Unlock()
	r.proving[conn] = p
	return nil
}

// settled waits until reads are usable, or will not be.
func (p *proving) settled(ctx context.Context, changed <-chan struct{}) error {
	for {
		err := p.leader.State()
		if err == nil || client.Foreign(err) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return messages.BrokerAway.From(err)
		}
	}
}

// retire stops proving an old connection, which nobody reads over any more.
func (r *reader) retire(_ context.Context, conn *broker.Conn) {
	r.mu.Lock()
	p := r.proving[conn]
	delete(r.proving, conn)
	r.mu.Unlock()
	if p != nil {
		p.end()
	}
}

func (p *proving) end() {
	p.stop()
	<-p.ended
}
