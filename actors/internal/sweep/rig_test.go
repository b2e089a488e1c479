package sweep_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/natsd"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

const instance = "aaaaaaaaaaaaaaaaaaaaaaaaaa"

// longEnough bounds the wait for something that must happen.
const longEnough = 20 * time.Second

// stage is a chain with whatever servers run on it.
type stage struct {
	testing.TB
	dir, url string
	m        *trust.Material
}

// single is a stage with one server that stands alone.
func single(t *testing.T) (*stage, *natsdtest.Space) {
	t.Helper()
	space := natsdtest.NewSpace(t, "acme")
	return &stage{TB: t, dir: space.Dir, url: space.URL(), m: space.Material}, space
}

// cluster is a stage with three servers, n1 to n3.
func cluster(t *testing.T) (*stage, *natsd.Group) {
	t.Helper()
	dir := natsdtest.Chain(t, "acme")
	group := natsdtest.Cluster(t, dir, 3)
	return &stage{TB: t, dir: dir, url: group.URL(), m: natsdtest.Load(t, dir, "acme")}, group
}

// conn opens a connection of ours in a role, to the server at url.
func (s *stage) conn(url string, role broker.Role) *broker.Conn {
	s.Helper()
	d, err := broker.NewDialer(broker.Config{URL: url, Space: "acme", Material: s.m, Logger: slog.New(slog.DiscardHandler)})
	s.must(err)
	var kept *broker.Conn
	c, err := d.Dial(s.Context(), role, func(c *broker.Conn) error { kept = c; return nil })
	s.must(err)
	s.Cleanup(func() { kept.Sever(); <-kept.Ended() })
	return c
}

func (s *stage) observer() *sweep.Observer { return s.observerAt(s.url) }

func (s *stage) observerAt(url string) *sweep.Observer {
	return sweep.NewObserver(s.conn(url, broker.Observer()).NATS(), 0)
}

func (s *stage) evictor() *nats.Conn { return s.conn(s.url, broker.Evictor()).NATS() }

func (s *stage) account(a trust.Account) string { return s.m.Account(a) }

// data connects a user of DATA with a JWT of its own.
func (s *stage) data(url string) *nats.Conn {
	s.Helper()
	return natsdtest.Connect(s, url, s.m, trust.DATA, natsdtest.Everything(), nats.NoReconnect())
}

// ctrl connects a user of CTRL that does not come back, as a scanner does.
func (s *stage) ctrl(url string) *nats.Conn {
	s.Helper()
	return natsdtest.Connect(s, url, s.m, trust.CTRL, natsdtest.Everything(), nats.NoReconnect())
}

// glass connects as the operator's own user of the system account, who may do
// anything there.
func (s *stage) glass(url string) *nats.Conn {
	s.Helper()
	ended := make(chan struct{})
	nc, err := nats.Connect(url, nats.UserCredentials(trust.BreakGlassSYS(s.dir)), nats.ClosedHandler(func(*nats.Conn) { close(ended) }))
	s.must(err)
	s.Cleanup(func() { nc.Close(); <-ended })
	return nc
}

// admitAll answers every connect as the service would admit who says of himself
// `<owner>.<actor>/<uid>`.
func (s *stage) admitAll() {
	s.Helper()
	opener, err := connect.NewOpener(connect.OpenerConfig{XKey: s.m.XKey.Seed})
	s.must(err)
	key := func(a trust.Account) connect.AccountKey {
		return connect.AccountKey{Account: s.m.Account(a), Signing: s.m.Signing[a].Seed}
	}
	answerer, err := connect.NewAnswerer(key(trust.AUTH), key(trust.DATA))
	s.must(err)
	may := jwt.Permission{Allow: jwt.StringList{"x"}, Deny: jwt.StringList{"$SYS.>"}}
	c := s.conn(s.url, broker.Callout(1))
	_, err = c.NATS().QueueSubscribe(broker.CalloutSubject, broker.CalloutQueue, func(m *nats.Msg) {
		r, err := opener.Open(m.Header.Get(connect.SealHeader), m.Data)
		if err != nil {
			s.Errorf("a connect does not open: %v", err)
			return
		}
		name, uid, _ := strings.Cut(r.Token.Reveal(), "/")
		owner, actor, _ := strings.Cut(name, ".")
		sealed, err := answerer.Admit(r, connect.Admission{
			Principal: messages.Principal{Owner: owner, Actor: actor}, UID: uid, Expires: time.Now().Add(time.Hour),
			Permissions: jwt.Permissions{Pub: may, Sub: may},
		}, time.Now())
		if err != nil {
			s.Errorf("admit %s: %v", name, err)
			return
		}
		_ = m.Respond(sealed)
	})
	s.must(err)
	s.must(c.NATS().Flush())
}

// principal connects as a client does, and tells which connection it is.
func (s *stage) principal(who string, opts ...nats.Option) messages.ConnectionRef {
	s.Helper()
	ended := make(chan struct{})
	nc, err := nats.Connect(s.url, append([]nats.Option{nats.UserCredentials(trust.SentinelCreds(s.dir)), nats.Token(who), nats.NoReconnect(),
		nats.Timeout(longEnough), nats.ClosedHandler(func(*nats.Conn) { close(ended) })}, opts...)...)
	s.must(err)
	s.Cleanup(func() { nc.Close(); <-ended })
	return ref(s, nc)
}

func ref(t testing.TB, nc *nats.Conn) messages.ConnectionRef {
	t.Helper()
	cid, err := nc.GetClientID()
	if err != nil {
		t.Fatal(err)
	}
	return messages.ConnectionRef{ServerID: nc.ConnectedServerId(), ClientID: cid}
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) roster(o *sweep.Observer, known ...string) messages.Roster {
	s.Helper()
	r, err := o.Roster(s.Context(), known)
	s.must(err)
	return r
}

func (s *stage) sweep(o *sweep.Observer, account trust.Account, targets ...messages.Target) messages.Swept {
	s.Helper()
	swept, err := o.Connections(s.Context(), s.account(account), s.roster(o), targets)
	s.must(err)
	return swept
}

// sure is a sweep without doubts.
func (s *stage) sure(o *sweep.Observer, account trust.Account, targets ...messages.Target) []messages.LiveConnection {
	s.Helper()
	swept := s.sweep(o, account, targets...)
	if len(swept.Doubts) > 0 {
		s.Fatalf("the sweep leaves doubts: %q", swept.Doubts)
	}
	return swept.Connections
}

func refs(list []messages.LiveConnection) []messages.ConnectionRef {
	var out []messages.ConnectionRef
	for _, c := range list {
		out = append(out, c.ConnectionRef)
	}
	return out
}

// sameRefs reports whether both lists hold the same connections, in any order.
func sameRefs(a, b []messages.ConnectionRef) bool {
	text := func(list []messages.ConnectionRef) []string {
		var out []string
		for _, c := range list {
			out = append(out, fmt.Sprint(c))
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(text(a), text(b))
}

func names(r messages.Roster) string {
	var out []string
	for _, s := range r.Servers {
		name := s.Name
		if !s.Answered {
			name += "?"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func says(doubts []string, part string) bool {
	return slices.ContainsFunc(doubts, func(d string) bool { return strings.Contains(d, part) })
}

// crowd runs do n times, a few at once: with many, a slow server pings clients that
// are still connecting, which these do not bear.
func crowd(n int, do func(int)) {
	var workers sync.WaitGroup
	next := make(chan int) // hands out one at a time
	for range 4 {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}

// within is a context with time enough for what must happen.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	t.Cleanup(cancel)
	return ctx
}
