package broker

import (
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
)

// Waits between attempts to reconnect, once every known server was tried.
const (
	firstReconnectWait = 20 * time.Millisecond
	lastReconnectWait  = 500 * time.Millisecond
)

// options says how every connection of ours behaves: it keeps nothing it could not
// send, does not give up on a server that refuses it twice, and names itself.
func (d *Dialer) options(role Role, u *user, c *Conn) []nats.Option {
	opts := []nats.Option{
		nats.Name(c.label),
		nats.CustomInboxPrefix(inboxOf(u.id)),
		nats.UserJWT(u.mint, u.pair.Sign),
		nats.Timeout(d.cfg.ConnectTimeout),
		nats.SetCustomDialer(c.sockets),
		nats.PingInterval(d.cfg.PingInterval),
		nats.MaxPingsOutstanding(2),
		nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.disconnected(err) }),
		nats.ReconnectHandler(func(*nats.Conn) { c.reconnected() }),
		nats.ClosedHandler(c.closed),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			d.cfg.Logger.Warn("the broker complained", "connection", c.label, "id", c.id, "error", err)
		}),
	}
	if role.life == standing {
		opts = append(opts, nats.MaxReconnects(-1), nats.CustomReconnectDelay(reconnectDelay))
	} else {
		opts = append(opts, nats.NoReconnect())
	}
	if !role.echo {
		opts = append(opts, nats.NoEcho())
	}
	if d.cfg.TLS != nil {
		opts = append(opts, nats.Secure(d.cfg.TLS.Clone()))
	}
	return opts
}

// reconnectDelay doubles up to a small cap, with full jitter below it: a
// connection counts as lost within a second, so long waits would only be lost.
func reconnectDelay(attempts int) time.Duration {
	wait := lastReconnectWait
	if attempts < 6 {
		wait = min(wait, firstReconnectWait<<max(attempts, 0))
	}
	return wait/2 + rand.N(wait/2)
}
