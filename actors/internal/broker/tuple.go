package broker

import "github.com/cotal-ai/authplane/messages"

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
