package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
)

// Liveness finds out whether one connection of an account, given by its public key,
// is gone. It is live when a server lists it or its user. It is gone as soon as the
// server it was made on, in the same run, lists neither; or when everybody that is
// counted has answered, that server's run is not among them, and its name answers
// in another run, or the operator gave it up for good. All else is unknown, and the
// note says what an operator can do. An error means that nobody could be asked.
//
// It takes no longer than RosterPatience: a server that was killed is counted for
// minutes, by others and after its own return.
func (o *Observer) Liveness(ctx context.Context, account string, c messages.ConnectionTuple, lost []string) (messages.Liveness, error) {
	ctx, cancel := context.WithTimeout(ctx, o.roster)
	defer cancel()
	s := &search{account: account, target: c, own: o.own, lost: slices.Contains(lost, c.ServerName), heard: map[string]bool{}}
	questions := []question{o.connections(account)}
	if o.own {
		s.account = ""
	} else {
		questions = append(questions, question{subject: pingSubject})
	}
	err := gather(ctx, o.nc, questions, func(number int, m *nats.Msg) bool {
		if number == 0 {
			s.hear(m.Data)
		} else {
			s.count(m.Data)
		}
		return s.complete()
	})
	if err == nil && len(s.heard) == 0 {
		err = Forbidden(o.nc)
	}
	return s.liveness(), err
}

// search looks for one connection in the pages of the servers.
type search struct {
	account string
	target  messages.ConnectionTuple
	// lost says that the operator gave the connection's server up.
	lost bool
	// own says that nobody counts the servers.
	own bool

	heard     map[string]bool // servers that gave a page, by id
	clustered bool
	active    int // how many servers some server counts
	// listed and unlisted say what a server said of the connection, for good.
	listed, unlisted string
	restarted        bool
	// problem is why the page of the connection's own server proves nothing.
	problem string
}

func (s *search) hear(data []byte) {
	e, err := open(data)
	if e.Server == nil {
		return
	}
	s.heard[e.Server.ID] = true
	s.clustered = s.clustered || e.Server.Cluster != ""
	var rows []row
	if err == nil {
		rows, err = readPage(e, s.account)
	}
	t := s.target
	switch {
	case slices.ContainsFunc(rows, func(r row) bool { return s.is(e.Server.ID, r) }):
		s.listed = e.Server.Name
	case e.Server.ID == t.ServerID && err != nil:
		s.problem = err.Error()
	case e.Server.ID == t.ServerID:
		s.unlisted = e.Server.Name
	case e.Server.Name == t.ServerName:
		s.restarted = true
	}
}

func (s *search) is(serverID string, r row) bool {
	return r.User == s.target.User || serverID == s.target.ServerID && r.ClientID == s.target.ClientID
}

// count takes a server's word for how many servers there are.
func (s *search) count(data []byte) {
	var stats statistics
	if e, err := open(data); err == nil && json.Unmarshal(e.Stats, &stats) == nil {
		s.active = max(s.active, stats.Active)
	}
}

// complete reports whether waiting longer can bring nothing new.
func (s *search) complete() bool {
	return s.listed != "" || s.unlisted != "" || s.everybody()
}

// everybody reports whether all servers that run have given their page.
func (s *search) everybody() bool {
	if s.own {
		return len(s.heard) == 1 && !s.clustered
	}
	return s.active > 0 && len(s.heard) >= s.active
}

func (s *search) liveness() messages.Liveness {
	say := func(v messages.Verdict, format string, args ...any) messages.Liveness {
		return messages.Liveness{Verdict: v, Note: fmt.Sprintf(format, args...)}
	}
	name := s.target.ServerName
	switch {
	case s.listed != "":
		return say(messages.Live, "server %s lists it", s.listed)
	case s.unlisted != "":
		return say(messages.Gone, "server %s lists it no more", s.unlisted)
	case s.problem != "":
		return say(messages.Unknown, "%s", s.problem)
	case len(s.heard) == 0:
		return say(messages.Unknown, "no server lists its connections")
	case s.lost:
		return say(messages.Gone, "server %s was given up for good", name)
	case s.restarted:
		return say(messages.Gone, "server %s was restarted since", name)
	default:
		return say(messages.Unknown, "server %s does not answer; start it again, or if it is gone for good: --server-lost %s", name, name)
	}
}
