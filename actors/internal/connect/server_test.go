package connect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

// station is a real server in operator mode and a bare responder beside it.
type station struct {
	dir      string
	srv      *server.Server
	material *trust.Material
	bearers  *identity.Keyring
	opener   *connect.Opener
	judge    *connect.Judge
	answerer *connect.Answerer

	answers atomic.Int64

	mu      sync.Mutex
	records map[messages.Principal]messages.Authority
	unable  error
}

func newStation(t *testing.T, list ...connect.Profile) *station {
	t.Helper()
	st := &station{dir: t.TempDir(), records: map[messages.Principal]messages.Authority{}}
	must(t, trust.Create(t.Context(), trust.Options{Dir: st.dir, Space: space, NATSURL: "nats://127.0.0.1:0"}))
	var err error
	st.material, err = trust.Load(t.Context(), trust.Directory(trust.SecretsDir(st.dir)), space)
	must(t, err)
	st.startServer(t)
	st.bearers, err = identity.OpenKeyring(space, st.material.Keyring)
	must(t, err)
	st.opener, err = connect.NewOpener(connect.OpenerConfig{XKey: st.material.XKey.Seed, Servers: []string{st.srv.ID()}})
	must(t, err)
	st.judge = connect.NewJudge(profiles(t, list...))
	st.answerer, err = connect.NewAnswerer(
		connect.AccountKey{Account: st.material.Account(trust.AUTH), Signing: st.material.Signing[trust.AUTH].Seed},
		connect.AccountKey{Account: st.material.Account(trust.DATA), Signing: st.material.Signing[trust.DATA].Seed})
	must(t, err)
	return st
}

func (st *station) startServer(t *testing.T) {
	t.Helper()
	opts, err := server.ProcessConfigFile(trust.ServerConf(st.dir))
	must(t, err)
	opts.JetStream = false // nothing here keeps anything
	st.srv = startServer(t, opts)
}

func startServer(t *testing.T, opts *server.Options) *server.Server {
	t.Helper()
	opts.NoLog, opts.NoSigs = true, true
	srv, err := server.NewServer(opts)
	must(t, err)
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	if !srv.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return srv
}

// respond answers connects until the test ends: one connection, a queue, two workers.
func (st *station) respond(t *testing.T, callout int) {
	t.Helper()
	st.respondOn(t, st.dialCallout(t, callout))
}

func (st *station) respondOn(t *testing.T, nc *nats.Conn) {
	t.Helper()
	queue := connect.NewQueue(connect.QueueConfig[*nats.Msg]{})
	_, err := nc.QueueSubscribe("$SYS.REQ.USER.AUTH", "callout", queue.Put)
	must(t, err)
	must(t, nc.Flush())
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for {
				msg, _, err := queue.Take(context.Background())
				if err != nil {
					return
				}
				st.decide(t, msg)
			}
		})
	}
	t.Cleanup(func() {
		nc.Close()
		queue.Close()
		workers.Wait()
	})
}

// dialCallout connects with exactly what a callout may do: hear requests, and
// answer each once.
func (st *station) dialCallout(t *testing.T, callout int) *nats.Conn {
	t.Helper()
	user := st.material.Callouts[callout]
	token, err := st.material.MintOwn(trust.OwnUser{
		Account: trust.AUTH, Subject: user.Public, Name: "cotal:auth-service:" + space, Expires: time.Now().Add(time.Hour),
		Permissions: jwt.Permissions{Sub: jwt.Permission{Allow: jwt.StringList{"$SYS.REQ.USER.AUTH"}}, Resp: &jwt.ResponsePermission{MaxMsgs: 1, Expires: 3 * time.Second}},
	})
	must(t, err)
	nc, err := nats.Connect(st.srv.ClientURL(), nats.UserJWTAndSeed(token, user.Seed.Reveal()))
	must(t, err)
	return nc
}

func (st *station) decide(t *testing.T, msg *nats.Msg) {
	request, err := st.opener.Open(msg.Header.Get(connect.SealHeader), msg.Data)
	if err != nil {
		t.Errorf("a server's request is refused: %v", err)
		return
	}
	admission, err := st.judgement(request)
	var answer []byte
	switch {
	case err == nil:
		answer, err = st.answerer.Admit(request, admission, time.Now())
	case connect.KindOf(err) == messages.Unanswered:
		return
	default:
		answer, err = st.answerer.Deny(request, err, time.Now())
	}
	if err != nil {
		t.Errorf("no answer: %v", err)
		return
	}
	st.answers.Add(1)
	if err := msg.Respond(answer); err != nil {
		t.Errorf("respond: %v", err)
	}
}

func (st *station) judgement(request connect.Request) (connect.Admission, error) {
	bearer, err := st.bearers.Verify(request.Token.Reveal(), time.Now())
	if err != nil {
		return connect.Admission{}, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.unable != nil {
		return connect.Admission{}, st.unable
	}
	return st.judge.Decide(bearer, st.records[bearer.Principal], time.Now())
}

// grant records a principal that may do what a says, and gives it a bearer.
func (st *station) grant(t *testing.T, actor string, a messages.Allowance) (messages.Principal, string) {
	t.Helper()
	p := messages.Principal{Owner: laptop.Owner, Actor: actor}
	at := time.Now()
	st.set(p, messages.Authority{
		HasHead: true, Head: messages.Head{Principal: p, UID: uid, Epoch: 1, State: messages.HeadActive, Root: messages.Root{ID: root, Expires: at.Add(time.Hour)}},
		HasGrant: true, Grant: messages.Grant{Principal: p, Kind: messages.Interactive, UID: uid, State: messages.GrantLive, Allowance: a},
	})
	token, err := st.bearers.Sign(identity.Bearer{Principal: p, UID: uid, CredentialID: root, IssuedAt: at, Expires: at.Add(10 * time.Minute)})
	must(t, err)
	return p, token.Reveal()
}

func (st *station) set(p messages.Principal, a messages.Authority) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.records[p] = a
}

// client is a principal's connection and what the server complained about.
type client struct {
	*nats.Conn
	complaints chan error // as many as any test provokes
	closed     chan struct{}
}

func (st *station) dial(t *testing.T, p messages.Principal, bearer string) (*client, error) {
	t.Helper()
	c := &client{complaints: make(chan error, 64), closed: make(chan struct{})}
	options := []nats.Option{nats.Token(bearer)}
	if st.dir != "" {
		options = append(options, nats.UserCredentials(trust.SentinelCreds(st.dir)))
	}
	nc, err := nats.Connect(st.srv.ClientURL(), append(options, nats.CustomInboxPrefix(p.InboxPrefix()), nats.NoReconnect(), nats.Timeout(patience),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.complaints <- err }),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }))...)
	if err != nil {
		return nil, err
	}
	c.Conn = nc
	t.Cleanup(nc.Close)
	return c, nil
}

func (st *station) mustDial(t *testing.T, p messages.Principal, bearer string) *client {
	t.Helper()
	c, err := st.dial(t, p, bearer)
	must(t, err)
	return c
}

// refused waits for the server to refuse what was just tried on the subject.
func (c *client) refused(t *testing.T, subject string) {
	t.Helper()
	must(t, c.Flush())
	select {
	case err := <-c.complaints:
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), fmt.Sprintf("%q", subject)) {
			t.Errorf("%s: the server complained otherwise: %v", subject, err)
		}
	case <-time.After(patience):
		t.Errorf("%s was not refused", subject)
	}
}

// fine fails if the server refused anything so far.
func (c *client) fine(t *testing.T, what string) {
	t.Helper()
	must(t, c.Flush())
	select {
	case err := <-c.complaints:
		t.Errorf("%s: %v", what, err)
	default:
	}
}

func (c *client) trySubscribe(t *testing.T, subject string) {
	t.Helper()
	_, err := c.SubscribeSync(subject)
	must(t, err)
}

// The whole way: into DATA under its name and incarnation, what is granted and
// nothing besides, the own inbox and no other (E095, E123).
func TestAdmittedConnection(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	p, bearer := st.grant(t, "Laptop_1", messages.Allowance{Publish: []string{"chat.>"}, Subscribe: []string{"chat.*", "news"}})
	c := st.mustDial(t, p, bearer)

	conns, err := st.srv.Connz(&server.ConnzOptions{Username: true, User: p.Name()})
	must(t, err)
	if len(conns.Conns) != 1 || conns.Conns[0].Account != st.material.Account(trust.DATA) || fmt.Sprint(conns.Conns[0].Tags) != "[uid:"+uid+"]" {
		t.Errorf("the server lists %+v", conns.Conns)
	}

	sub, err := c.SubscribeSync("chat.*")
	must(t, err)
	must(t, c.Publish("chat.a", []byte("hello")))
	if msg, err := sub.NextMsg(patience); err != nil || string(msg.Data) != "hello" {
		t.Errorf("got %v, %v", msg, err)
	}
	c.trySubscribe(t, p.InboxPrefix()+".mine.*")
	c.fine(t, "what is granted")

	for _, subject := range []string{"other", ">", "*", "*.a", "$SYS.>", "$SYS.ACCOUNT.>", "_INBOX.>", "_INBOX_" + laptop.Owner + "-x.>", "_R_.>", "$JS.>"} {
		c.trySubscribe(t, subject)
		c.refused(t, subject)
	}
	for _, subject := range []string{"news", "other", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.USER.INFO", "$SYS.REQ.USER.AUTH", p.InboxPrefix() + ".mine.1", "$JS.API.INFO"} {
		must(t, c.PublishRequest(subject, p.InboxPrefix()+".mine.1", nil))
		c.refused(t, subject)
	}
}

// The server lets `chat.>` be subscribed where `chat.*` is allowed. It delivers
// what `chat.*` would, and no more.
func TestLastWildcardStaysNarrow(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	p, bearer := st.grant(t, "hears", messages.Allowance{Subscribe: []string{"chat.*", "a.*.*", "jobs.*", "jobs.>"}})
	q, speaking := st.grant(t, "speaks", messages.Allowance{Publish: []string{"chat.>", "a.>", "jobs.>"}})
	hears, speaks := st.mustDial(t, p, bearer), st.mustDial(t, q, speaking)
	for _, c := range []struct {
		subject      string
		never, heard []string
	}{
		{"chat.>", []string{"chat.a.b", "chat.a.b.c"}, []string{"chat.a"}},
		{"a.*.>", []string{"a.b.c.d"}, []string{"a.b.c"}},
		{"jobs.>", nil, []string{"jobs.a", "jobs.a.b"}},
	} {
		sub, err := hears.SubscribeSync(c.subject)
		must(t, err)
		must(t, hears.Flush())
		for _, subject := range append(c.never, c.heard...) {
			must(t, speaks.Publish(subject, nil))
		}
		must(t, speaks.Flush())
		for _, want := range c.heard {
			msg, err := sub.NextMsg(patience)
			must(t, err)
			if msg.Subject != want {
				t.Errorf("subscribed to %s, heard %s, want %s", c.subject, msg.Subject, want)
			}
		}
	}
	hears.fine(t, "what is granted")
}

// Empty lists are nothing (E117), whatever the server takes an absent list for.
func TestEmptyListsOnAServer(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	p, bearer := st.grant(t, "quiet", messages.Allowance{})
	c := st.mustDial(t, p, bearer)
	c.trySubscribe(t, p.InboxPrefix()+".>")
	c.fine(t, "the own inbox")
	for _, subject := range []string{"a", "a.b", ">", "*", "$SYS.>"} {
		c.trySubscribe(t, subject)
		c.refused(t, subject)
	}
	for _, subject := range []string{"a", "a.b", "$SYS.REQ.USER.INFO", "$JS.API.INFO"} {
		must(t, c.Publish(subject, nil))
		c.refused(t, subject)
	}
}

// Who serves answers a request in the asker's inbox, once; who does not, cannot.
func TestServingOnAServer(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	asker, token := st.grant(t, "asker", messages.Allowance{Publish: []string{"svc.>"}})
	ask := st.mustDial(t, asker, token)
	for _, c := range []struct {
		actor string
		a     messages.Allowance
		want  bool
	}{
		{"serves", messages.Allowance{Subscribe: []string{"svc.serves"}, Serve: true}, true},
		{"serves_also", messages.Allowance{Subscribe: []string{"svc.serves_also"}, Publish: []string{"other"}, Serve: true}, true},
		{"listens", messages.Allowance{Subscribe: []string{"svc.listens"}}, false},
	} {
		p, token := st.grant(t, c.actor, c.a)
		service := st.mustDial(t, p, token)
		requests, err := service.SubscribeSync("svc." + c.actor)
		must(t, err)
		must(t, service.Flush())
		answers, err := ask.SubscribeSync(ask.NewInbox())
		must(t, err)
		must(t, ask.PublishRequest("svc."+c.actor, answers.Subject, nil))
		request, err := requests.NextMsg(patience)
		must(t, err)
		must(t, request.Respond([]byte("first")))
		if !c.want {
			service.refused(t, answers.Subject)
			continue
		}
		service.fine(t, "the reply of who serves")
		if answer, err := answers.NextMsg(patience); err != nil || string(answer.Data) != "first" {
			t.Errorf("%s: got %v, %v", c.actor, answer, err)
		}
		must(t, request.Respond([]byte("second")))
		service.refused(t, answers.Subject)
	}
	ask.fine(t, "asking")
}

// A refusal is answered, fast, and what is refused does not come in.
func TestDeniedConnection(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	p, bearer := st.grant(t, "laptop", messages.Allowance{})
	revoked, revokedBearer := st.grant(t, "revoked", messages.Allowance{})
	a := st.records[revoked]
	a.Grant.State = messages.GrantRevoked
	st.set(revoked, a)
	elsewhere := newSite(t) // E093: another authority's keyring stands for another space's
	at := time.Now()
	foreign := elsewhere.bearer(t, identity.Bearer{Principal: p, UID: uid, CredentialID: root, IssuedAt: at, Expires: at.Add(time.Minute)})

	for what, token := range map[string]string{
		"no bearer": "", "junk": "junk", "tampered": bearer[:len(bearer)-10] + "AAAAAAAAAA", "of elsewhere": foreign, "revoked": revokedBearer,
	} {
		before := st.answers.Load()
		fastest := patience
		for range 3 { // the machine may be busy once
			start := time.Now()
			_, err := st.dial(t, p, token)
			fastest = min(fastest, time.Since(start))
			if !errors.Is(err, nats.ErrAuthorization) {
				t.Fatalf("%s: got %v, want a refusal", what, err)
			}
		}
		if fastest > 200*time.Millisecond {
			t.Errorf("%s: the refusal took %v", what, fastest)
		}
		if n := st.answers.Load() - before; n != 3 {
			t.Errorf("%s: %d answers for 3 connects", what, n)
		}
	}
	st.mustDial(t, p, bearer)
}

// Our own inability is met with silence, after which the same client comes in.
func TestUnansweredConnection(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	p, bearer := st.grant(t, "laptop", messages.Allowance{})
	st.mu.Lock()
	st.unable = messages.Unproved
	st.mu.Unlock()
	if _, err := st.dial(t, p, bearer); err == nil {
		t.Fatal("it came in without a decision")
	}
	if n := st.answers.Load(); n != 0 {
		t.Fatalf("%d answers were sent", n)
	}
	st.mu.Lock()
	st.unable = nil
	st.mu.Unlock()
	st.mustDial(t, p, bearer)
}

// E094. The server ends a connection when its user does; a fresh connect comes in.
func TestConnectionEndsWithItsUser(t *testing.T) {
	st := newStation(t, connect.Profile{Name: "brief", MaxLife: 2 * time.Second})
	st.respond(t, 0)
	p, bearer := st.grant(t, "laptop", messages.Allowance{Role: "brief"})
	c := st.mustDial(t, p, bearer)
	select {
	case <-c.closed:
	case <-time.After(patience):
		t.Fatal("it outlives its user")
	}
	select {
	case err := <-c.complaints:
		if !errors.Is(err, nats.ErrAuthExpired) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the server did not say why")
	}
	st.mustDial(t, p, bearer)
}

// E091. Two responders in one group: each request has one answer.
func TestTwoResponders(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	st.respond(t, 1)
	p, bearer := st.grant(t, "laptop", messages.Allowance{})
	const clients, each = 4, 5
	var dialling sync.WaitGroup
	failed := make(chan error, clients*each)
	for range clients {
		dialling.Go(func() {
			for range each {
				if _, err := st.dial(t, p, bearer); err != nil {
					failed <- err
				}
			}
		})
	}
	dialling.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if n := st.answers.Load(); n != clients*each {
		t.Errorf("%d answers for %d connects", n, clients*each)
	}
}
