package sweep_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// hasty is an observer that waits less for who does not answer.
func (s *stage) hasty() *sweep.Observer {
	s.Helper()
	return sweep.NewObserver(s.conn(s.url, broker.Observer()).NATS(), 200*time.Millisecond)
}

// tuple is how a row would pin a connection of CTRL.
func (s *stage) tuple(o *sweep.Observer, nc *nats.Conn) messages.ConnectionTuple {
	s.Helper()
	name := ref(s, nc)
	t := messages.ConnectionTuple{ServerName: nc.ConnectedServerName(), ServerID: name.ServerID, ClientID: name.ClientID}
	for _, listed := range s.sure(o, trust.CTRL) {
		if listed.ClientID == t.ClientID && listed.ServerID == t.ServerID {
			t.User = listed.User
			return t
		}
	}
	s.Fatal("the connection is not listed")
	return t
}

func (s *stage) verdict(o *sweep.Observer, t messages.ConnectionTuple, lost ...string) messages.Liveness {
	s.Helper()
	l, err := o.Liveness(s.Context(), s.account(trust.CTRL), t, lost)
	s.must(err)
	if l.Note == "" {
		s.Error("a verdict without a word for the operator")
	}
	return l
}

func TestWhetherAConnectionIsGone(t *testing.T) {
	s, space := single(t)
	o := s.observer()
	c := s.ctrl(space.URL())
	pinned := s.tuple(o, c)
	if l := s.verdict(o, pinned); l.Verdict != messages.Live {
		t.Errorf("while it stands: %+v", l)
	}
	if l := s.verdict(o, pinned, pinned.ServerName); l.Verdict != messages.Live {
		t.Errorf("while it stands, on a server that was given up: %+v", l)
	}
	other := pinned
	other.User = "somebody else"
	if l := s.verdict(o, other); l.Verdict != messages.Live {
		t.Errorf("by its number alone: %+v", l)
	}
	other = pinned
	other.ClientID, other.ServerID = 1<<40, newServerID(t)
	if l := s.verdict(o, other); l.Verdict != messages.Live {
		t.Errorf("by its user alone: %+v", l)
	}
	c.Close()
	began := time.Now()
	natsdtest.Eventually(t, "the server lists it no more", func() error {
		if l := s.verdict(o, pinned); l.Verdict != messages.Gone {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
	if took := time.Since(began); took >= sweep.RosterPatience {
		t.Errorf("it took %v", took)
	}

	// A server of that name that never ran under that id was restarted since.
	other = pinned
	other.ServerID = newServerID(t)
	began = time.Now()
	if l := s.verdict(o, other); l.Verdict != messages.Gone || !strings.Contains(l.Note, "restarted") {
		t.Errorf("after a restart: %+v", l)
	}
	if took := time.Since(began); took >= sweep.RosterPatience {
		t.Errorf("it took %v", took)
	}
	other.ServerName = "elsewhere"
	if l := s.verdict(o, other); l.Verdict != messages.Unknown || !strings.Contains(l.Note, "--server-lost elsewhere") {
		t.Errorf("on a server that nobody hears: %+v", l)
	}
	if l := s.verdict(o, other, "another"); l.Verdict != messages.Unknown {
		t.Errorf("while another server was given up: %+v", l)
	}
	if l := s.verdict(o, other, "another", "elsewhere"); l.Verdict != messages.Gone {
		t.Errorf("on a server that was given up: %+v", l)
	}
}

func TestAWholeBrokerThatWasRestarted(t *testing.T) {
	s, space := single(t)
	pinned := s.tuple(s.observer(), s.ctrl(space.URL()))
	space.Restart(t)
	o := s.observerAt(space.URL())
	natsdtest.Eventually(t, "it is gone", func() error {
		if l := s.verdict(o, pinned); l.Verdict != messages.Gone || !strings.Contains(l.Note, "restarted") {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
}

// A page that proves nothing leaves the question open, even of a server given up.
func TestATornPageProvesNobodyGone(t *testing.T) {
	s, space := single(t)
	forger := s.glass(space.URL())
	id := newServerID(t)
	heard, err := forger.Subscribe("$SYS.REQ.ACCOUNT."+s.account(trust.CTRL)+".CONNZ", func(m *nats.Msg) {
		_ = m.Respond([]byte(`{"server":{"name":"n9","id":"` + id + `"},"data":{"server_id":"` + id + `","num_connections":0,"total":1,"offset":0,"connections":[]}}`))
	})
	s.must(err)
	defer func() { s.must(heard.Unsubscribe()) }()
	s.must(forger.Flush())
	pinned := messages.ConnectionTuple{ServerName: "n9", ServerID: id, ClientID: 5, User: "U"}
	o := s.hasty()
	natsdtest.Eventually(t, "the torn page came in time", func() error {
		if l := s.verdict(o, pinned, "n9"); l.Verdict != messages.Unknown {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
}

// A server that was killed is counted for minutes. Nobody waits for it longer than
// who asks about a connection has time.
func TestACountedServerThatIsGoneHoldsNobodyUp(t *testing.T) {
	s, space := single(t)
	o := s.observer()
	pinned := s.tuple(o, s.ctrl(space.URL()))
	pinned.ServerID, pinned.User, pinned.ClientID = newServerID(t), "U", 1<<40 // restarted since
	forger := s.glass(space.URL())
	id := newServerID(t)
	asked := make(chan struct{}, 1) // one hint is enough
	heard, err := forger.Subscribe("$SYS.REQ.SERVER.PING", func(m *nats.Msg) {
		_ = m.Respond([]byte(`{"server":{"name":"n9","id":"` + id + `"},"statsz":{"active_servers":2}}`))
		select {
		case asked <- struct{}{}:
		default:
		}
	})
	s.must(err)
	defer func() { s.must(heard.Unsubscribe()) }()
	s.must(forger.Flush())
	natsdtest.Eventually(t, "the other server is counted in time", func() error {
		began := time.Now()
		l := s.verdict(o, pinned)
		took := time.Since(began)
		<-asked
		if l.Verdict != messages.Gone || !strings.Contains(l.Note, "restarted") || took >= sweep.PagePatience {
			t.Fatalf("after %v: %+v", took, l)
		}
		if took < sweep.RosterPatience {
			return fmt.Errorf("it was not waited for: %v", took)
		}
		return nil
	})
}

// liveInACluster is about connections of a server that stops, and comes back.
func (s *stage) liveInACluster(t *testing.T, group *natsd.Group, o *sweep.Observer) {
	victim := group.Server(1)
	pinned := s.tuple(o, s.ctrl(victim.URL()))
	elsewhere := s.tuple(o, s.ctrl(group.Server(0).URL()))
	natsdtest.Stop(t, victim)
	o = s.observerAt(group.Server(0).URL())
	if l := s.verdict(o, pinned); l.Verdict != messages.Unknown || !strings.Contains(l.Note, "--server-lost "+victim.Name()) {
		t.Errorf("its server does not run: %+v", l)
	}
	if l := s.verdict(o, pinned, victim.Name()); l.Verdict != messages.Gone {
		t.Errorf("its server was given up: %+v", l)
	}
	if l := s.verdict(o, elsewhere); l.Verdict != messages.Live {
		t.Errorf("one of another server: %+v", l)
	}
	if err := group.Start(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	natsdtest.Eventually(t, "its server runs again", func() error {
		if l := s.verdict(o, pinned); l.Verdict != messages.Gone || !strings.Contains(l.Note, "restarted") {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
}

// ownAt observes CTRL over a connection of CTRL.
func (s *stage) ownAt(url string) *sweep.Observer {
	s.Helper()
	return sweep.NewOwnObserver(s.ctrl(url), 500*time.Millisecond)
}

func TestAnAccountSweepsItself(t *testing.T) {
	s, space := single(t)
	live := ref(t, s.ctrl(space.URL()))
	ctrl := s.ownAt(space.URL())
	s.must(ctrl.Prove(t.Context()))
	swept, err := ctrl.Connections(t.Context(), "", messages.Roster{}, nil)
	s.must(err)
	if len(swept.Doubts) > 0 || len(swept.Connections) != 2 || !containsRef(refs(swept.Connections), live) {
		t.Errorf("got %+v", swept)
	}
	if _, err := ctrl.Roster(t.Context(), nil); !errors.Is(err, messages.InternalFault) {
		t.Errorf("it says who the servers are: %v", err)
	}
	// What another account has it cannot see.
	s.data(space.URL())
	if again, err := ctrl.Connections(t.Context(), "", messages.Roster{}, nil); err != nil || len(again.Connections) != 2 {
		t.Errorf("got %+v, %v", again, err)
	}

	c := s.ctrl(space.URL())
	pinned := s.tuple(s.observer(), c)
	if l := s.verdict(ctrl, pinned); l.Verdict != messages.Live {
		t.Errorf("while it stands: %+v", l)
	}
	c.Close()
	natsdtest.Eventually(t, "it is gone", func() error {
		if l := s.verdict(ctrl, pinned); l.Verdict != messages.Gone {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})

	stranger := sweep.NewOwnObserver(s.conn(space.URL(), broker.Reader(instance)).NATS(), 200*time.Millisecond)
	if err := stranger.Prove(t.Context()); !errors.Is(err, messages.KeysUnusable) {
		t.Errorf("who may not ask is taken for an observer: %v", err)
	}
}

// ownInACluster is about an account that sweeps itself where nobody says how many
// servers there are.
func (s *stage) ownInACluster(t *testing.T, group *natsd.Group) {
	var want []messages.ConnectionRef
	for i := range group.Size() {
		want = append(want, ref(t, s.ctrl(group.Server(i).URL())))
	}
	own := s.ownAt(group.Server(0).URL())
	blind, err := own.Connections(t.Context(), "", messages.Roster{}, nil)
	s.must(err)
	if !says(blind.Doubts, "how many servers") {
		t.Errorf("it believes to have seen them all: %+v", blind)
	}
	known := messages.Roster{Servers: []messages.Server{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}}
	natsdtest.Eventually(t, "every server it knows of answers", func() error {
		swept, err := own.Connections(t.Context(), "", known, nil)
		if err != nil || len(swept.Doubts) > 0 {
			return fmt.Errorf("%+v, %w", swept, err)
		}
		for _, c := range want {
			if !containsRef(refs(swept.Connections), c) {
				return fmt.Errorf("%+v is not among %+v", c, swept.Connections)
			}
		}
		return nil
	})
	known.Servers = append(known.Servers, messages.Server{Name: "n4"})
	swept, err := own.Connections(t.Context(), "", known, nil)
	s.must(err)
	if !says(swept.Doubts, "server n4 does not answer") {
		t.Errorf("it misses nobody: %+v", swept)
	}
}
