package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// Config is what a Dialer needs to know. Zero values mean the defaults.
type Config struct {
	// URL names the servers, comma-separated.
	URL      string
	Space    string
	Material *trust.Material
	// TLS is used when not nil, and for tls:// URLs.
	TLS *tls.Config
	// Logger hears of permission violations and expiries; default slog.Default().
	Logger *slog.Logger

	// StandingLifetime is how long a standing user's JWT runs; it is renewed at half
	// of it. Default 15 min. Too short and every hiccup of the broker becomes a
	// failed renewal. Servers round to whole seconds.
	StandingLifetime time.Duration
	// ShortLifetime is the same for short-lived users, which are never renewed.
	// Default 60 s.
	ShortLifetime time.Duration
	// ConnectTimeout bounds one attempt to connect to one server; default 5 s. Too
	// short and a server busy with a storm of clients makes renewals fail.
	ConnectTimeout time.Duration
	// LostAfter is how long a connection may be disconnected before it counts as
	// lost; default 1 s.
	LostAfter time.Duration
	// PingInterval is how often an idle connection asks whether the server is still
	// there; the third question without an answer disconnects. Default 1 s.
	PingInterval time.Duration
	// Open opens a socket; default a plain net.Dialer. For fault injection.
	Open func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	for _, d := range []struct {
		at       *time.Duration
		standard time.Duration
	}{
		{&c.StandingLifetime, 15 * time.Minute},
		{&c.ShortLifetime, time.Minute},
		{&c.ConnectTimeout, 5 * time.Second},
		{&c.LostAfter, time.Second},
		{&c.PingInterval, time.Second},
	} {
		if *d.at == 0 {
			*d.at = d.standard
		}
	}
	if c.Open == nil {
		c.Open = new(net.Dialer).DialContext
	}
	return c
}

func (c Config) check() error {
	var problems []error
	if c.URL == "" {
		problems = append(problems, errors.New("no server URL"))
	}
	if err := names.CheckSpace(c.Space); err != nil {
		problems = append(problems, err)
	}
	if c.Material == nil {
		problems = append(problems, errors.New("no key material"))
	} else if c.Material.Space != c.Space {
		problems = append(problems, fmt.Errorf("the key material is of space %q, not %q", c.Material.Space, c.Space))
	}
	if c.StandingLifetime < 0 || c.ShortLifetime < 0 || c.ConnectTimeout < 0 || c.LostAfter < 0 || c.PingInterval < 0 {
		problems = append(problems, errors.New("a time is negative"))
	}
	return errors.Join(problems...)
}

// Dialer opens the connections of one space. It holds no connection itself and is
// safe for concurrent use.
type Dialer struct{ cfg Config }

// NewDialer checks the configuration whole; it opens nothing.
func NewDialer(cfg Config) (*Dialer, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	return &Dialer{cfg: cfg.withDefaults()}, nil
}

// Keep takes a connection into custody. It is called once for every connection,
// before anybody can use it; when it refuses, the connection is closed and the
// dial fails with its error. It must not block.
type Keep func(*Conn) error

// Dial opens one connection in a role and returns it once custody has it. The
// caller owns it and closes it. The context bounds the dial alone. When no server
// answers, the error wraps messages.BrokerAway.
func (d *Dialer) Dial(ctx context.Context, role Role, keep Keep) (*Conn, error) {
	return d.dial(ctx, role, keep, 1)
}

func (d *Dialer) dial(ctx context.Context, role Role, keep Keep, generation uint64) (*Conn, error) {
	label := role.label(d.cfg.Space)
	if keep == nil {
		return nil, fmt.Errorf("dial %s: %w", label, messages.InternalFault.Because("nobody takes custody"))
	}
	c, err := d.connect(ctx, role, generation)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", label, away(err))
	}
	if err := keep(c); err != nil {
		c.Sever()
		<-c.Ended()
		return nil, fmt.Errorf("dial %s: custody: %w", label, err)
	}
	return c, nil
}

// connect mints, connects and wires up the end of the connection.
func (d *Dialer) connect(ctx context.Context, role Role, generation uint64) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	user, err := d.newUser(role)
	if err != nil {
		return nil, err
	}
	c := newConn(d.cfg, role, user, generation)
	c.sockets.setBound(ctx)
	stop := context.AfterFunc(ctx, c.sockets.cut)
	nc, err := nats.Connect(d.cfg.URL, d.options(role, user, c)...)
	inTime := stop()
	if err != nil {
		if !inTime {
			return nil, errors.Join(ctx.Err(), err)
		}
		return nil, err
	}
	c.adopt(nc)
	if !inTime {
		c.Sever()
		<-c.Ended()
		return nil, ctx.Err()
	}
	return c, nil
}

// user is who a connection is: its key, and how its JWTs are made.
type user struct {
	id      string
	subject string // its public nkey
	pair    nkeys.KeyPair
	mint    func() (string, error)
}

func (d *Dialer) newUser(role Role) (*user, error) {
	m := d.cfg.Material
	id := names.NewUID()
	permissions, err := role.permissions(d.cfg.Space, inboxOf(id))
	if err != nil {
		return nil, err
	}
	pair, err := role.keyPair(m)
	if err != nil {
		return nil, err
	}
	subject, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	own := trust.OwnUser{Account: role.account, Subject: subject, Name: role.label(d.cfg.Space), Permissions: permissions}
	if role.scope != nil {
		own.Name, own.Scope = id, role.scope(m).Public
	}
	lifetime := d.lifetime(role)
	return &user{id: id, subject: subject, pair: pair, mint: func() (string, error) {
		fresh := own
		if lifetime > 0 {
			fresh.Expires = time.Now().Add(lifetime)
		}
		return m.MintOwn(fresh)
	}}, nil
}

func (r Role) keyPair(m *trust.Material) (nkeys.KeyPair, error) {
	if r.identity == nil {
		return nkeys.CreateUser()
	}
	return nkeys.FromSeed([]byte(r.identity(m).Seed.Reveal()))
}

// lifetime of the role's user JWT; 0 for one that never expires.
func (d *Dialer) lifetime(role Role) time.Duration {
	switch role.life {
	case standing:
		return d.cfg.StandingLifetime
	case shortLived:
		return d.cfg.ShortLifetime
	default:
		return 0
	}
}

func inboxOf(id string) string { return "_INBOX_" + id }
