package broker

import (
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// Tuple names this connection for the claim: the server it is on, its number there,
// and its user, which no other connection has unless its role has a listed one. It
// is false while disconnected. For a role that never reconnects it never changes.
func (c *Conn) Tuple() (messages.ConnectionTuple, bool) {
	t := messages.ConnectionTuple{
		ServerName: c.nc.ConnectedServerName(),
		ServerID:   c.nc.ConnectedServerId(),
		ClientID:   c.ClientID(),
		User:       c.subject,
	}
	return t, t.ServerName != "" && t.ServerID != "" && t.ClientID != 0
}

// Kickable reports whether this is a connection that others shall drop when its
// process stands still: one that hears connects, or questions on the rail, and would
// swallow its share of them, or one that a claim names.
func (c *Conn) Kickable() bool { return c.kickable }

// kickable says so of every connection of the role.
func (r Role) kickable() bool {
	return r.account == trust.AUTH && r.respond != nil || r.life == unending || r.name == Admin().name
}
