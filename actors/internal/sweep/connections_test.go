package sweep_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

const (
	uidA = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	uidB = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
	uidC = "cccccccccccccccccccccccccc"
)

func TestASweepFindsExactlyItsTargets(t *testing.T) {
	s, space := single(t)
	s.admitAll()
	one := s.principal("u_x.Laptop/" + uidA)
	two := s.principal("u_x.Laptop/" + uidB)
	other := s.principal("u_x.laptop/" + uidC)
	// Whoever they say they are, it is the answer to their connect that names them.
	liar := s.principal("u_y.phone/"+uidC, nats.Name("u_x-Laptop"), nats.UserInfo("u_x-Laptop", "x"), nats.Token("u_y.phone/"+uidC))
	foreign := s.data(space.URL())
	user := userOf(t, s, foreign)

	laptop := messages.Principal{Owner: "u_x", Actor: "Laptop"}
	o := s.observer()
	for name, tc := range map[string]struct {
		targets []messages.Target
		want    []messages.ConnectionRef
	}{
		"everybody":                       {nil, []messages.ConnectionRef{one, two, other, liar, ref(t, foreign)}},
		"a principal in all its lives":    {[]messages.Target{{Principal: laptop}}, []messages.ConnectionRef{one, two}},
		"a principal in one life":         {[]messages.Target{{Principal: laptop, UID: uidA}}, []messages.ConnectionRef{one}},
		"a life, whatever it is called":   {[]messages.Target{{UID: uidC}}, []messages.ConnectionRef{other, liar}},
		"a user":                          {[]messages.Target{{User: user}}, []messages.ConnectionRef{ref(t, foreign)}},
		"several":                         {[]messages.Target{{Principal: laptop, UID: uidB}, {User: user}}, []messages.ConnectionRef{two, ref(t, foreign)}},
		"nobody":                          {[]messages.Target{{Principal: messages.Principal{Owner: "u_x", Actor: "LAPTOP"}}}, nil},
		"a target that names nobody":      {[]messages.Target{{}}, nil},
		"a life that no connection is of": {[]messages.Target{{Principal: laptop, UID: "dddddddddddddddddddddddddd"}}, nil},
	} {
		if got := s.sure(o, trust.DATA, tc.targets...); !sameRefs(refs(got), tc.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
	for _, c := range s.sure(o, trust.DATA, messages.Target{Principal: laptop, UID: uidA}) {
		if c.User != "u_x-Laptop" || c.UID != uidA || c.ServerName != space.Server.Name() {
			t.Errorf("got %+v", c)
		}
	}
}

// userOf is the nkey a connection is listed under.
func userOf(t *testing.T, s *stage, nc *nats.Conn) string {
	t.Helper()
	for _, c := range s.sure(s.observer(), trust.DATA) {
		if c.ConnectionRef == ref(t, nc) {
			if !nkeys.IsValidPublicUserKey(c.User) {
				t.Fatalf("it is listed as %q", c.User)
			}
			return c.User
		}
	}
	t.Fatal("it is not listed")
	return ""
}

func TestASweepOfAccountsOfOurOwn(t *testing.T) {
	s, _ := single(t)
	reader := s.conn(s.url, broker.Reader(instance))
	presence := s.conn(s.url, broker.Presence(instance))
	o := s.observer()
	for account, want := range map[trust.Account]*broker.Conn{trust.CTRL: reader, trust.AUTH: presence} {
		got := s.sure(o, account)
		if !sameRefs(refs(got), []messages.ConnectionRef{ref(t, want.NATS())}) || got[0].Label != want.Label() {
			t.Errorf("%s: got %+v", account, got)
		}
	}
	if got := s.sure(o, trust.DATA); len(got) > 0 {
		t.Errorf("nobody is in DATA, got %+v", got)
	}
	if user := s.sure(o, trust.AUTH)[0].User; user != s.m.Presence.Public {
		t.Errorf("presence is listed as %s", user)
	}
}

func TestWhoMayNotSweepIsTold(t *testing.T) {
	s, _ := single(t)
	o := s.hasty()
	if _, err := o.Connections(t.Context(), s.account(trust.SVC), s.roster(o), nil); !errors.Is(err, messages.KeysUnusable) {
		t.Errorf("an account that is none of the observer's: %v", err)
	}
}

func TestMoreConnectionsThanAPage(t *testing.T) {
	t.Parallel()
	s, space := single(t)
	const many = 1101
	var mu sync.Mutex
	var want []messages.ConnectionRef
	user := natsdtest.User(t, s.m, trust.DATA, natsdtest.Everything()) // one for all, since minting takes most of the time
	crowd(many, func(int) {
		nc, err := nats.Connect(space.URL(), user, nats.NoReconnect(), nats.Timeout(longEnough))
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(nc.Close)
		mu.Lock()
		defer mu.Unlock()
		want = append(want, ref(t, nc))
	})
	// The server is slow under the race detector, and this is not about its speed.
	o := sweep.NewObserver(s.conn(s.url, broker.Observer()).NATS(), longEnough)
	began := time.Now()
	got := s.sure(o, trust.DATA)
	if !sameRefs(refs(got), want) {
		t.Fatalf("%d connections of %d are listed", len(got), many)
	}
	t.Logf("%d connections in %v", len(got), time.Since(began))

	const kicked = 300
	for _, r := range s.kick(refs(got)[:kicked]) {
		if r.Outcome != messages.KickDone {
			t.Fatalf("got %+v", r)
		}
	}
	if left := s.sure(o, trust.DATA); !sameRefs(refs(left), refs(got)[kicked:]) {
		t.Errorf("%d are left", len(left))
	}
}

func TestASweepOfACluster(t *testing.T) {
	t.Parallel()
	s, group := cluster(t)
	o := s.observer()
	natsdtest.Eventually(t, "all three answer", s.allAnswer(o))
	var want []messages.ConnectionRef
	for i := range group.Size() {
		want = append(want, ref(t, s.data(group.Server(i).URL())))
	}
	natsdtest.Eventually(t, "each server lists its own", func() error {
		if got := s.sure(o, trust.DATA); !sameRefs(refs(got), want) {
			return fmt.Errorf("got %+v, want %+v", got, want)
		}
		return nil
	})
	// Kicks go to each connection's own server, from wherever they are asked.
	for _, r := range s.kick(want) {
		if r.Outcome != messages.KickDone {
			t.Errorf("got %+v", r)
		}
	}
	if left := s.sure(o, trust.DATA); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	s.liveInACluster(t, group, o)
	s.ownInACluster(t, group)
}

// Somebody else in the system account may answer as well. Whatever he says, it
// makes nobody gone.
func TestAnswersThatProveNothing(t *testing.T) {
	t.Parallel()
	s, space := single(t)
	live := ref(t, s.data(space.URL()))
	o := s.observer()
	forger, hasty := s.glass(space.URL()), s.hasty()
	own, stranger, account := space.Server.ID(), newServerID(t), s.account(trust.DATA)
	list := func(server, id, data string) string {
		return `{"server":{"name":"` + server + `","id":"` + id + `"},"data":` + data + `}`
	}
	row := `{"cid":7,"authorized_user":"u_x-laptop","account":"` + account + `"}`
	for name, tc := range map[string]struct{ answer, doubt string }{
		"no JSON":              {`{"server":`, "cannot be read"},
		"nothing":              {``, "cannot be read"},
		"no server":            {`{"data":{}}`, "does not say which server"},
		"a server without id":  {`{"server":{"name":"n9"},"data":{}}`, "does not say which server"},
		"an id that is none":   {list("n9", "x", `{}`), "does not say which server"},
		"an error":             {`{"server":{"name":"n9","id":"` + stranger + `"},"error":{"code":500,"description":"no"}}`, "no (500)"},
		"no data":              {`{"server":{"name":"n9","id":"` + stranger + `"}}`, "cannot be read"},
		"data of no form":      {list("n9", stranger, `7`), "cannot be read"},
		"no list":              {list("n9", stranger, `{"server_id":"`+stranger+`","num_connections":0,"total":0,"offset":0}`), "lacks a part"},
		"no total":             {list("n9", stranger, `{"server_id":"`+stranger+`","num_connections":0,"offset":0,"connections":[]}`), "lacks a part"},
		"another server's":     {list("n9", stranger, `{"server_id":"`+own+`","num_connections":0,"total":0,"offset":0,"connections":[]}`), "of another server"},
		"a part":               {list("n9", stranger, `{"server_id":"`+stranger+`","num_connections":1,"total":2,"offset":0,"connections":[`+row+`]}`), "1 of 2 connections"},
		"a later page":         {list("n9", stranger, `{"server_id":"`+stranger+`","num_connections":1,"total":1,"offset":1,"connections":[`+row+`]}`), "1 of 1 connections"},
		"no number":            {list("n9", stranger, page(stranger, strings.Replace(row, `"cid":7,`, "", 1))), "no number"},
		"a number of no form":  {list("n9", stranger, page(stranger, strings.Replace(row, `7`, `"7"`, 1))), "cannot be read"},
		"a number twice":       {list("n9", stranger, `{"server_id":"`+stranger+`","num_connections":2,"total":2,"offset":0,"connections":[`+row+`,`+row+`]}`), "listed twice"},
		"another account's":    {list("n9", stranger, page(stranger, strings.Replace(row, account, s.account(trust.CTRL), 1))), "another account"},
		"no name yet":          {list("n9", stranger, page(stranger, strings.Replace(row, "u_x-laptop", "[REDACTED]", 1))), "no name yet"},
		"a server's second":    {list(space.Server.Name(), own, page(own, row)), "answers twice"},
		"a server's own, torn": {list(space.Server.Name(), own, `{}`), "answers twice"},
	} {
		t.Run(name, func(t *testing.T) {
			heard, err := forger.Subscribe("$SYS.REQ.ACCOUNT."+account+".CONNZ", func(m *nats.Msg) {
				_ = m.Respond([]byte(tc.answer))
			})
			s.must(err)
			defer func() { s.must(heard.Unsubscribe()); s.must(forger.Flush()) }()
			s.must(forger.Flush())
			// A server that is awaited and silent, so that there is time for the forgery.
			roster := s.roster(o)
			roster.Servers = append(roster.Servers, messages.Server{Name: "silent", ID: newServerID(t)})
			natsdtest.Eventually(t, "the forgery leaves a doubt, and no more", func() error {
				swept, err := hasty.Connections(t.Context(), account, roster, nil)
				switch {
				case err != nil:
					return err
				case !says(swept.Doubts, tc.doubt) || !says(swept.Doubts, "server silent does not answer"):
					return fmt.Errorf("the doubts are %q", swept.Doubts)
				// Which of two answers of one server is the honest one, nobody can tell.
				case !strings.Contains(tc.answer, `"id":"`+own) && !containsRef(refs(swept.Connections), live):
					return fmt.Errorf("the honest server's word is lost: %+v", swept)
				}
				for _, server := range swept.Servers {
					if server.Whole && (server.ID != own || strings.Contains(tc.answer, `"id":"`+own)) {
						t.Errorf("%+v counts as whole", server)
					}
				}
				return nil
			})
		})
	}
}

func page(id, row string) string {
	return `{"server_id":"` + id + `","num_connections":1,"total":1,"offset":0,"connections":[` + row + `]}`
}

func containsRef(list []messages.ConnectionRef, want messages.ConnectionRef) bool {
	for _, c := range list {
		if c == want {
			return true
		}
	}
	return false
}

func newServerID(t *testing.T) string {
	t.Helper()
	pair, err := nkeys.CreateServer()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}
