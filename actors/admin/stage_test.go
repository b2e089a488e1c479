package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/claim"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	longEnough = 30 * time.Second
	owner      = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa"
	uid        = "uuuuuuuuuuuuuuuuuuuuuuuuuuuu"
	another    = "vvvvvvvvvvvvvvvvvvvvvvvvvvvv"
)

var (
	laptop  = messages.Principal{Owner: owner, Actor: "laptop"}
	manager = messages.Principal{Owner: owner, Actor: "manager"}
)

// plane answers in place of the plane's actors: laptop's incarnation stands, and is
// retired once somebody asked and the test lets it.
type plane struct {
	mu    sync.Mutex
	held  bool
	asked []messages.AskRetirement
	over  chan struct{} // closed when the retirement is over
	// heard is told of every retirement that is asked for; 4096 is more than a test has.
	heard chan struct{}
}

func newPlane(held bool) *plane {
	return &plane{held: held, over: make(chan struct{}), heard: make(chan struct{}, 4096)}
}

func (p *plane) answer(ctx context.Context, m any) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m := m.(type) {
	case claim.ReadOwed:
		if !p.held {
			return nil, messages.ClaimFenced
		}
		return messages.Owed{}, nil
	case messages.ReadAuthority:
		if m.Principal != laptop {
			return messages.Authority{}, nil
		}
		return messages.Authority{
			HasHead: true, Head: messages.Head{Principal: laptop, UID: uid, State: messages.HeadActive},
			HasGrant: true, Grant: messages.Grant{Principal: laptop, UID: uid, State: messages.GrantLive},
		}, nil
	case messages.AskRetirement:
		p.asked = append(p.asked, m)
		p.heard <- struct{}{}
		return messages.RetirementAsked{Principal: m.Principal, UID: m.UID, Operation: ledger.OperationOf(m.UID)}, nil
	case messages.ReadOperation:
		return p.operation(m.ID), nil
	case messages.AwaitOperation:
		p.mu.Unlock()
		timer := time.NewTimer(time.Until(m.Deadline))
		select {
		case <-p.over:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		p.mu.Lock()
		return p.operation(m.ID), ctx.Err()
	}
	return nil, messages.InternalFault
}

func (p *plane) operation(id string) messages.OperationProgress {
	op := messages.OperationProgress{Operation: messages.Operation{ID: id, Kind: messages.Retirement, Principal: laptop, UID: uid, Step: messages.StepBegun}}
	select {
	case <-p.over:
		op.Step, op.Outcome = messages.StepDone, messages.Outcome{Evicted: 3, Servers: []string{"n1"}}
	default:
	}
	return op
}

func (p *plane) retirements() []messages.AskRetirement {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]messages.AskRetirement(nil), p.asked...)
}

func (p *plane) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
}

// teller answers what it is asked beside its Receive, as the plane's actors do.
type teller struct {
	life  *supervisor.Life
	plane *plane
}

func (a *teller) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *supervisor.Open:
		a.life.Opened()
	case *supervisor.Drain:
		a.life.Drained(nil)
	case *supervisor.Close:
		a.life.ClosedWith(nil)
	case claim.ReadOwed, messages.ReadAuthority, messages.AskRetirement, messages.ReadOperation, messages.AwaitOperation:
		to := ctx.Sender()
		a.life.Go("answer", func(ctx context.Context) {
			answer, err := a.plane.answer(ctx, m)
			if err != nil {
				answer = err
			}
			a.life.Reply(to, answer)
		})
	}
}

// stage is a broker with a rail on it.
type stage struct {
	*testing.T
	space *natsdtest.Space
	plane *plane
	tree  *supervisor.Tree
}

func newStage(t *testing.T, p *plane, tune ...func(*broker.Config)) *stage {
	t.Helper()
	s := &stage{T: t, space: natsdtest.NewSpace(t, "acme"), plane: p}
	cfg := broker.Config{URL: s.space.URL(), Space: "acme", Material: s.space.Material, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range tune {
		f(&cfg)
	}
	dialer, err := broker.NewDialer(cfg)
	s.must(err)
	children := []supervisor.Spec{}
	for _, name := range []string{"reader", "writer", "desk", "claim"} {
		children = append(children, supervisor.Spec{Name: name, New: func(life *supervisor.Life) actor.Actor { return &teller{life, p} }})
	}
	children = append(children, Spec(Config{
		Dialer: dialer, Space: "acme", Callers: s.space.Material.Account(trust.SVC), Reader: "reader", Writer: "writer", Desk: "desk", Claim: "claim",
	}))
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	t.Cleanup(system.Shutdown)
	s.tree, err = supervisor.Start(t.Context(), system, supervisor.Spec{Name: "plane", Group: &supervisor.Group{
		Children: children,
		Stages:   []supervisor.Stage{{Name: "rail", Close: []string{Name}}, {Name: "rest", Close: []string{"reader", "writer", "desk", "claim"}}},
	}})
	s.must(err)
	t.Cleanup(func() { s.must(s.tree.Close(context.Background())) })
	return s
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// requester connects as who may ask for the end of one incarnation.
func (s *stage) requester(target messages.Principal, uid string) *nats.Conn {
	s.Helper()
	pair, err := nkeys.CreateUser()
	s.must(err)
	user, err := pair.PublicKey()
	s.must(err)
	ask := broker.RetirementRequester{Behalf: manager, Target: target, UID: uid, User: user, Expires: time.Now().Add(broker.RequesterLifetime)}
	token, err := broker.MintRetirementRequester(s.space.Material, ask)
	s.must(err)
	return s.connect(nats.UserJWT(func() (string, error) { return token, nil }, pair.Sign), nats.CustomInboxPrefix(ask.InboxPrefix()))
}

func (s *stage) connect(opts ...nats.Option) *nats.Conn {
	s.Helper()
	ended := make(chan struct{})
	nc, err := nats.Connect(s.space.URL(), append(opts, nats.ClosedHandler(func(*nats.Conn) { close(ended) }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	s.must(err)
	s.Cleanup(func() { nc.Close(); <-ended })
	return nc
}

// answer is what the rail said.
type answer struct {
	status string // of a refusal
	OpID   string `json:"op_id"`
	UID    string
	// Outcome and the rest are of a retirement that is over.
	Outcome string
	Evicted int
	Servers []string
	Error   struct {
		Code, Reason, Message string
		Retryable             bool
		Changed               *bool
		OpID                  string `json:"op_id"`
		Step                  string
	}
}

func (s *stage) read(m *nats.Msg) answer {
	s.Helper()
	var a answer
	if err := json.Unmarshal(m.Data, &a); err != nil {
		s.Errorf("answered %q: %v", m.Data, err)
	}
	a.status = m.Header.Get(micro.ErrorCodeHeader)
	if (a.status != "") != (a.Error.Code != "") || a.Error.Message != m.Header.Get(micro.ErrorHeader) {
		s.Errorf("headers %v and body %s differ", m.Header, m.Data)
	}
	return a
}

// undone insists that a refusal says that nothing was changed.
func (a answer) undone() bool {
	return a.Error.Changed != nil && !*a.Error.Changed && strings.Contains(a.Error.Message, "nothing was changed")
}

// ask asks for the end of an incarnation once the rail is there.
func (s *stage) ask(nc *nats.Conn, target messages.Principal, uid, body string) answer {
	s.Helper()
	var m *nats.Msg
	natsdtest.Eventually(s.T, "the rail is served", func() (err error) {
		m, err = nc.Request(broker.RetireSubject("acme", target, uid), []byte(body), longEnough)
		if err != nil && !errors.Is(err, nats.ErrNoResponders) {
			s.Fatal(err)
		}
		return err
	})
	return s.read(m)
}

// later asks beside the test.
func (s *stage) later(nc *nats.Conn, body string) <-chan answer {
	s.Helper()
	subject, came := broker.RetireSubject("acme", laptop, uid), make(chan answer, 1)
	go func() {
		m, err := nc.Request(subject, []byte(body), 2*longEnough)
		if err != nil {
			s.Error(err)
			m = &nats.Msg{Data: []byte("{}")}
		}
		came <- s.read(m)
	}()
	return came
}

func (s *stage) heard() {
	s.Helper()
	select {
	case <-s.plane.heard:
	case <-time.After(longEnough):
		s.Fatal("nobody was asked")
	}
}
