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
		// A publish to the system is led away by the account before it is judged.
		led := strings.Replace(subject, "$SYS.", "authplane.nowhere.", 1)
		named := strings.Contains(err.Error(), fmt.Sprintf("%q", subject)) || strings.Contains(err.Error(), fmt.Sprintf("%q", led))
		if !errors.Is(err, nats.ErrPermissionViolation) || !named {
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
