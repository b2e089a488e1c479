package callout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

const longEnough = 20 * time.Second

// stage is one process with responders on a broker, with a reader that does as a test wants.
type stage struct {
	testing.TB
	space   *natsdtest.Space
	tree    *supervisor.Tree
	denials *connect.Denials
	// answer is how the reader answers: func(to func(any)).
	answer atomic.Value
	// credential is what it reads of a descendant; unset is none.
	credential atomic.Pointer[messages.Credential]
	// process is what it reads of the process of an instance; unset is none. processes
	// counts the reads.
	process   atomic.Pointer[messages.ProcessRead]
	processes atomic.Int32
}

// served is the process of the bearer `served`.
var served = identity.Process{Endpoint: "svc_a", Instance: "cccccccccccccccccccccccccc", Epoch: 3, CredentialID: "own"}

// anybody verifies every bearer as that of one principal.
type anybody struct{}

func (anybody) Verify(token string, _ time.Time) (identity.Bearer, error) {
	b, err := anybody{}.own()
	if token == "served" {
		b.Process = served
	}
	return b, err
}

func (anybody) own() (identity.Bearer, error) {
	return identity.Bearer{Principal: messages.Principal{Owner: "u_bbbbbbbbbbbbbbbbbbbbbbbbbb", Actor: "x"}, UID: "aaaaaaaaaaaaaaaaaaaaaaaaaa", CredentialID: "c1",
		Expires: time.Now().Add(time.Minute)}, nil
}

func start(t testing.TB, tune ...func(*broker.Config)) *stage {
	t.Helper()
	s := &stage{TB: t, space: natsdtest.NewSpace(t, "acme")}
	s.run(1, nil, tune...)
	return s
}

// run starts a process with so many responders.
func (s *stage) run(responders int, plain *Once, tune ...func(*broker.Config)) {
	s.Helper()
	s.denials = &connect.Denials{}
	s.works()
	config := broker.Config{URL: s.space.URL(), Space: s.space.Name, Material: s.space.Material, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range tune {
		f(&config)
	}
	dialer, err := broker.NewDialer(config)
	s.must(err)
	opener, err := connect.NewOpener(connect.OpenerConfig{XKey: s.space.Material.XKey.Seed})
	s.must(err)
	profiles, err := connect.NewProfiles(s.space.Name, nil)
	s.must(err)
	key := func(a trust.Account) connect.AccountKey {
		return connect.AccountKey{Account: s.space.Material.Account(a), Signing: s.space.Material.Signing[a].Seed}
	}
	answerer, err := connect.NewAnswerer(key(trust.AUTH), key(trust.DATA))
	s.must(err)
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	s.Cleanup(system.Shutdown)
	children := []supervisor.Spec{{Name: "reader", New: s.reader}}
	for i := range responders {
		children = append(children, Spec(i+1, Config{Dialer: dialer, Opener: opener, Verifier: anybody{}, Judge: connect.NewJudge(profiles), Answerer: answerer,
			Denials: s.denials, Reader: "reader", Plain: plain}))
	}
	s.tree, err = supervisor.Start(s.Context(), system, supervisor.Spec{Name: "space", Group: &supervisor.Group{Children: children}})
	s.must(err)
	s.Cleanup(func() { s.must(s.tree.Close(context.Background())) })
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) reader(life *supervisor.Life) actor.Actor {
	return actor.ReceiveFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *supervisor.Open:
			life.Opened()
		case *supervisor.Drain:
			life.Drained(nil)
		case *supervisor.Close:
			life.ClosedWith(nil)
		case messages.ReadAuthority:
			to := ctx.Sender()
			if err := names.CheckPrincipal(m.Principal); err != nil { // as the real one does, without reading
				life.Reply(to, err)
				return
			}
			s.answer.Load().(func(func(any)))(func(answer any) { life.Reply(to, answer) })
		case messages.ReadCredential:
			found := messages.CredentialRead{}
			if c := s.credential.Load(); c != nil && m.UID == c.UID && m.ID == c.ID {
				found = messages.CredentialRead{Found: true, Credential: *c}
			}
			life.Reply(ctx.Sender(), found)
		case messages.ReadProcess:
			s.processes.Add(1)
			found := messages.ProcessRead{}
			if p := s.process.Load(); p != nil && m == (messages.ReadProcess{Endpoint: served.Endpoint, Instance: served.Instance, CredentialID: served.CredentialID}) {
				found = *p
			}
			life.Reply(ctx.Sender(), found)
		}
	})
}

// works has the reader say that nobody is granted anything: that is an answer.
func (s *stage) works() {
	s.answer.Store(func(to func(any)) { to(messages.Authority{ReadAt: time.Now()}) })
}

// fails has the reader refuse.
func (s *stage) fails(why error) { s.answer.Store(func(to func(any)) { to(why) }) }

// knock connects as a client does, whatever comes of it.
func (s *stage) knock() {
	s.Helper()
	nc, err := nats.Connect(s.space.URL(), nats.UserCredentials(trust.SentinelCreds(s.space.Dir)), nats.Token("x"), nats.NoReconnect(), nats.Timeout(longEnough))
	if err == nil {
		nc.Close()
		s.Error("somebody without a grant is let in")
	}
}

// members lists the responder's connections, and which of them are in the group.
func (s *stage) members() (in, out []uint64) {
	s.Helper()
	page, err := s.space.Server.Native().Connz(&natsserver.ConnzOptions{Account: s.space.Material.Account(trust.AUTH), Subscriptions: true})
	s.must(err)
	for _, c := range page.Conns {
		if slices.Contains(c.Subs, broker.CalloutSubject) {
			in = append(in, c.Cid)
		} else {
			out = append(out, c.Cid)
		}
	}
	return in, out
}

// becomes waits until so many connections are in the group, and so many beside it.
func (s *stage) becomes(in, out int) {
	s.Helper()
	natsdtest.Eventually(s.TB, fmt.Sprintf("%d in the group and %d beside it", in, out), func() error {
		if a, b := s.members(); len(a) != in || len(b) != out {
			return errors.New(fmt.Sprint(a, b))
		}
		return nil
	})
}
