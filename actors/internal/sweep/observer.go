package sweep

import (
	"cmp"
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
)

// How long servers get to answer. Too short, and a busy server counts as missing;
// too long, and whoever asks waits for one that is.
const (
	// RosterPatience is for saying who they are, and whether one connection lives. It
	// passes whenever one is missing.
	RosterPatience = 2 * time.Second
	// PagePatience is for a page of connections, and for a kick. Only those that
	// have just said who they are, are waited for so long.
	PagePatience = 5 * time.Second
)

// Observer asks over one connection who the servers are and what connections they
// have. It keeps nothing and is safe for concurrent use.
type Observer struct {
	nc           *nats.Conn
	roster, page time.Duration // how long servers get to answer
	own          bool
}

// NewObserver makes an observer on a connection to the system account that may
// ask as the observer's key says. Each question waits for patience at most; 0 means
// RosterPatience and PagePatience.
func NewObserver(nc *nats.Conn, patience time.Duration) *Observer {
	return &Observer{nc: nc, roster: cmp.Or(patience, RosterPatience), page: cmp.Or(patience, PagePatience)}
}

// ownSubject is where an account asks for its own connections.
const ownSubject = "$SYS.REQ.ACCOUNT.PING.CONNZ"

// NewOwnObserver makes an observer on a connection of the very account it is to
// sweep, for where there is no way into the system account. It sees the connections
// of that account and no other, and cannot tell who the servers are: only of known
// servers can it say that they are missing, so that in a cluster its word is worth
// no more than the list it is given. It cannot make a Roster.
func NewOwnObserver(nc *nats.Conn, patience time.Duration) *Observer {
	o := NewObserver(nc, patience)
	o.own = true
	return o
}

// Prove makes sure that the connection may ask and that a server answers, whoever
// is missing.
func (o *Observer) Prove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, o.roster)
	defer cancel()
	answered := false
	q := question{subject: pingSubject}
	if o.own {
		q = question{subject: ownSubject, body: []byte(`{"limit":1}`)}
	}
	err := gather(ctx, o.nc, []question{q}, func(_ int, m *nats.Msg) bool {
		answered = !nobodyThere(m)
		return true
	})
	switch forbidden := Forbidden(o.nc); {
	case err != nil || answered:
		return err
	case forbidden != nil:
		return forbidden
	default:
		return messages.BrokerAway.Because("no server says who it is")
	}
}

// connections is the question for the connections of one account.
func (o *Observer) connections(account string) question {
	// One page above any total: with several, connections can slip from one to the next.
	q := question{subject: "$SYS.REQ.ACCOUNT." + account + ".CONNZ", body: []byte(`{"auth":true,"limit":1048576}`)}
	if o.own {
		q.subject = ownSubject
	}
	return q
}
