package sweep

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
)

// Connections asks every server for its connections of an account, given by its
// public key, and returns those of the targets; with no targets all of them. It
// waits until every server of the roster that answered there has answered here, or
// the deadline has passed. The roster's doubts stay doubts. An error means that
// nobody could be asked.
func (o *Observer) Connections(ctx context.Context, account string, roster messages.Roster, targets []messages.Target) (messages.Swept, error) {
	ctx, cancel := context.WithTimeout(ctx, o.page)
	defer cancel()
	s := newSweep(account, roster, targets, o.own)
	err := gather(ctx, o.nc, []question{o.connections(account)}, func(_ int, m *nats.Msg) bool {
		s.hear(m)
		return s.complete()
	})
	if err == nil && len(s.lists) == 0 {
		err = Forbidden(o.nc)
	}
	return s.swept(), err
}

// sweep collects one page of every server.
type sweep struct {
	account string
	roster  messages.Roster
	wanted  wanted
	own     bool
	lists   map[string]*list // by server id
	doubts  []string
}

// list is what one server answered.
type list struct {
	sender
	whole bool
	rows  []row
}

func newSweep(account string, roster messages.Roster, targets []messages.Target, own bool) *sweep {
	return &sweep{account: account, roster: roster, wanted: want(targets), own: own, lists: map[string]*list{},
		doubts: slices.Clone(roster.Doubts)}
}

func (s *sweep) hear(m *nats.Msg) {
	e, err := open(m.Data)
	switch {
	case nobodyThere(m):
		return // no server answers, which swept says
	case e.Server == nil:
		s.doubt(err)
		return
	case s.lists[e.Server.ID] != nil:
		s.lists[e.Server.ID].whole = false
		s.doubt(fmt.Errorf("server %s answers twice", e.Server.Name))
		return
	}
	l := &list{sender: *e.Server}
	s.lists[l.ID] = l
	var rows []row
	if err == nil {
		rows, err = readPage(e, s.account)
	}
	l.whole = err == nil
	if err != nil {
		s.doubt(err)
	}
	for _, r := range rows {
		if r.ClientID > 0 && s.wanted.has(r) {
			l.rows = append(l.rows, r)
		}
	}
}

func (s *sweep) doubt(err error) { s.doubts = append(s.doubts, err.Error()) }

// complete reports whether everybody who is awaited has answered.
func (s *sweep) complete() bool {
	if s.own {
		return s.completeOwn()
	}
	for _, server := range s.roster.Servers {
		if server.ID != "" && s.lists[server.ID] == nil {
			return false
		}
	}
	return len(s.lists) > 0
}

// completeOwn is complete where nobody says who the servers are: a server that
// stands alone is all there is, and of others those known by name are awaited.
func (s *sweep) completeOwn() bool {
	if len(s.roster.Servers) == 0 {
		return s.alone()
	}
	for _, server := range s.roster.Servers {
		if !s.heard(server.Name) {
			return false
		}
	}
	return true
}

// alone reports whether one server answered, and stands alone.
func (s *sweep) alone() bool {
	for _, l := range s.lists {
		if l.Cluster != "" {
			return false
		}
	}
	return len(s.lists) == 1
}

func (s *sweep) heard(name string) bool {
	for _, l := range s.lists {
		if l.Name == name {
			return true
		}
	}
	return false
}

func (s *sweep) swept() messages.Swept {
	out := messages.Swept{Doubts: s.doubts}
	for _, l := range s.lists {
		out.Servers = append(out.Servers, messages.SweptServer{Name: l.Name, ID: l.ID, Whole: l.whole})
		for _, r := range l.rows {
			out.Connections = append(out.Connections, messages.LiveConnection{
				ConnectionRef: messages.ConnectionRef{ServerID: l.ID, ClientID: r.ClientID},
				ServerName:    l.Name, User: r.User, UID: r.uid(), Label: r.Label,
			})
		}
	}
	for _, server := range s.roster.Servers {
		if s.answers(server) {
			continue
		}
		out.Servers = append(out.Servers, messages.SweptServer{Name: server.Name, ID: server.ID})
		if said := missing(server.Name); !slices.Contains(out.Doubts, said) {
			out.Doubts = append(out.Doubts, said)
		}
	}
	switch {
	case len(s.lists) == 0:
		out.Doubts = append(out.Doubts, "no server lists its connections")
	case s.own && len(s.roster.Servers) == 0 && !s.alone():
		out.Doubts = append(out.Doubts, "nobody says how many servers the cluster has")
	}
	slices.SortFunc(out.Servers, func(a, b messages.SweptServer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(out.Connections, func(a, b messages.LiveConnection) int {
		return cmp.Or(cmp.Compare(a.ServerID, b.ServerID), cmp.Compare(a.ClientID, b.ClientID))
	})
	return out
}

// answers reports whether a server of the roster, in the run it was met in, is
// among those that answered.
func (s *sweep) answers(server messages.Server) bool {
	if server.ID != "" {
		return s.lists[server.ID] != nil
	}
	return s.heard(server.Name)
}
