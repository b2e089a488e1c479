package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
	"github.com/cotal-ai/authplane/test/world"
)

// A short is one kind of connection that lives for one thing.
type short struct {
	// label begins its name, in custody and at the server.
	label string
	// prefix begins the paths of its actors.
	prefix string
	// work has the thing be done for the n-th time, or begun. It tells what its caller is
	// told.
	work func(ctx context.Context, n int) error
	// refused is what the service says no to, over such a connection; nil where that never
	// comes so far.
	refused func(ctx context.Context, n int) error
	// over has the connection not be needed any more; nil where it ends by itself.
	over func(n int)
	// alone says that nobody waits for it, so that nobody is told of a failure.
	alone bool
}

// An end is one way in which such a connection ends.
type end struct {
	name string
	// at is the number of the message to its actor that is met, counted from 1; 0 is its
	// Close.
	at int
	// kill is how the actor is killed while it stands at that; empty for a panic at it.
	kill string
	// leaves has the caller go while the actor stands at it.
	leaves bool
	// early says that there may be no connection yet.
	early bool
}

// The messages by their number: an actor opens, is told of its connection, and is asked.
const (
	toOpen = 1 + iota
	toConnected
	toAsk
	toClose = 0
)

var ends = []end{
	{name: "panic over its opening", at: toOpen, early: true},
	{name: "panic with the connection in hand", at: toConnected},
	{name: "panic when it is asked", at: toAsk},
	{name: "panic over its close", at: toClose},
	{name: "killed by panic", at: toAsk, kill: "panic"},
	{name: "killed by stop", at: toAsk, kill: "stop"},
	{name: "disconnected", at: toAsk, kill: "disconnect"},
	{name: "the caller leaves", at: toAsk, leaves: true},
}

// TestShortLivedConnections has every connection that lives for one thing end in every
// way: each was in custody under its label, and is gone from there and from the server.
func TestShortLivedConnections(t *testing.T) {
	t.Parallel()
	g := newShortlist(t)
	for _, s := range g.shorts() {
		t.Run(strings.Split(s.label, ":")[1], func(t *testing.T) { // one after the other: some begin with another's
			n := 0
			ended := func(name string, early bool, do func(n int)) {
				t.Run(name, func(t *testing.T) {
					n++
					before, _ := g.seen.count(t, s.label)
					do(n)
					if s.over != nil {
						s.over(n)
					}
					g.gone(t, s, before, early)
				})
			}
			ended("success", false, func(n int) {
				if err := s.work(g.Context(), n); err != nil {
					t.Error(err)
				}
			})
			if s.refused != nil {
				ended("refused", false, func(n int) {
					if err := s.refused(g.Context(), n); err == nil || messages.Describe(err).Retryable {
						t.Errorf("it is told %v", err)
					}
				})
			}
			for _, e := range ends {
				ended(e.name, e.early, func(n int) { g.meet(t, s, e, n) })
			}
		})
	}
}

// TestTheRegistrationOfTheServiceItself is the same for the one that nobody asks for.
func TestTheRegistrationOfTheServiceItself(t *testing.T) {
	t.Parallel()
	seen := &custody{}
	w := world.New(t, seen.watch)
	const label = "cotal:auth-registration:main"
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends with the start
		defer cancel()
		for held := 0; held == 0 && ctx.Err() == nil; held, _ = seen.count(t, label) {
		}
	}()
	if h, err := space.Start(ctx, w.System, w.Config); err == nil { // it may have been too late
		_ = h.Close(w.Context())
	}
	cancel()
	w.NoConnections()
	w.Start()
	w.Poll("it to have ended", func() bool {
		held, ended := seen.count(t, label)
		return held >= 1 && held == ended
	})
	for _, c := range w.Space.Connections() {
		if c.Label == label && !c.Ended {
			t.Errorf("%+v", c)
		}
	}
}

// shortlist is a space in which all of it can be done.
type shortlist struct {
	*jobber
	seen    *custody
	js      jetstream.JetStream
	boss    world.Grant
	account string

	mu       sync.Mutex
	met      []*meeting
	assigned messages.Assignment
}

// meeting is a message that is waited for.
type meeting struct {
	prefix string
	at     int
	path   string // of the one actor that is met; empty until one opens
	count  int
	hold   bool
	struck chan string   // the path
	let    chan struct{} // lets it go
}

func newShortlist(t *testing.T) *shortlist {
	g := &shortlist{seen: &custody{}}
	g.jobber = newJobber(t, g.seen.watch, func(c *space.Config) {
		c.Middleware, c.Platform = g.middleware, g
		c.Public = &space.PublicConfig{Listen: "127.0.0.1:0"}
		c.Footprint = messages.Footprint{Consumers: []messages.FootprintConsumer{{Stream: "DM", Name: "dm-{uid}"}}}
	})
	var err error
	if g.js, err = jetstream.New(g.Owner("data")); err == nil {
		_, err = g.js.CreateStream(g.Context(), jetstream.StreamConfig{Name: "DM", Subjects: []string{"dm.>"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	g.boss = g.Grant("boss", "laptop", "demo.>")
	g.account = g.accountOf(t)
	awaitPlane(g.World)
	return g
}

// accountOf is the public key of DATA, as the server has it of who owns it.
func (g *shortlist) accountOf(t *testing.T) string {
	id, err := g.js.Conn().GetClientID()
	if err != nil {
		t.Fatal(err)
	}
	connz, err := g.Broker.Connz(&server.ConnzOptions{CID: id, Username: true})
	if err != nil || len(connz.Conns) != 1 {
		t.Fatalf("%+v, %v", connz, err)
	}
	return connz.Conns[0].Account
}

// Assignment is messages.Assignments.
func (g *shortlist) Assignment(context.Context) (messages.Assignment, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.assigned, true, nil
}

// middleware has messages be met.
func (g *shortlist) middleware(path string) []actor.ReceiverMiddleware {
	return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
			if m := g.meets(path, e.Message); m != nil {
				m.struck <- path
				if !m.hold {
					panic("injected")
				}
				<-m.let
			}
			next(c, e)
		}
	}}
}

func (g *shortlist) meets(path string, message any) *meeting {
	switch message.(type) {
	case *actor.Started, *actor.Stopping, *actor.Stopped, *actor.Terminated:
		return nil
	}
	_, opening := message.(*supervisor.Open)
	_, closing := message.(*supervisor.Close)
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, m := range g.met {
		if m.path == "" && opening && strings.HasPrefix(path, m.prefix) {
			m.path = path
		}
		if m.path != path {
			continue
		}
		m.count++
		if m.at == toClose && closing || m.at != toClose && m.at == m.count {
			g.met = append(g.met[:i:i], g.met[i+1:]...)
			return m
		}
	}
	return nil
}

// meet has one life of a short end in a way.
func (g *shortlist) meet(t *testing.T, s short, e end, n int) {
	m := &meeting{prefix: s.prefix, at: e.at, hold: e.kill != "" || e.leaves, struck: make(chan string, 1), let: make(chan struct{})}
	g.mu.Lock()
	g.met = append(g.met, m)
	g.mu.Unlock()
	ctx, leave := context.WithCancel(g.Context())
	defer leave()
	told := make(chan error, 1)
	go func() { told <- s.work(ctx, n) }()
	if e.at == toClose && s.over != nil {
		<-told
		s.over(n)
		told <- nil
	}
	path := within(t, m.struck, e.name)
	switch {
	case e.leaves:
		leave()
	case e.kill != "":
		if _, _, err := g.Space.Kill(t.Context(), path, e.kill); err != nil && !errors.Is(err, messages.KillInapplicable) {
			t.Error(err)
		}
	}
	close(m.let)
	err := within(t, told, "who asked")
	if err != nil && !s.alone && !messages.Describe(err).Retryable && !errors.Is(err, context.Canceled) {
		t.Errorf("the caller is told %v", err)
	}
}

// gone waits until every connection of a label has ended, here and at the server.
func (g *shortlist) gone(t *testing.T, s short, before int, early bool) {
	t.Helper()
	w := *g.World
	w.TB = t
	w.Poll(s.label+" to be gone", func() bool {
		held, ended := g.seen.count(t, s.label)
		if held != ended || held == before && !early {
			return false
		}
		connz, err := g.Broker.Connz(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range connz.Conns {
			if strings.HasPrefix(c.Name, s.label) {
				return false
			}
		}
		return true
	})
}

// count tells how many connections of a label were held, and how many of these ended.
func (c *custody) count(t *testing.T, label string) (held, ended int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range strings.Lines(c.log.String()) {
		if !strings.Contains(line, label) {
			continue
		}
		held += strings.Count(line, `"msg":"resource held"`)
		ended += strings.Count(line, `"msg":"resource ended"`)
	}
	return held, ended
}

func (g *shortlist) shorts() []short {
	registered := func(n int) string { return fmt.Sprintf("%026d", n) }
	svc := messages.Principal{Owner: g.boss.Owner, Actor: "svc"}
	kept, keeper := registered(98), messages.Principal{Owner: g.boss.Owner, Actor: g.boss.Actor}
	if _, err := g.Space.RegisterHostInstance(g.Context(), jobs, kept, keeper); err != nil {
		g.Fatal(err)
	}
	if _, err := g.Space.IssueInstanceCredential(g.Context(), jobs, kept, 0, 0); err != nil {
		g.Fatal(err)
	}
	enroll := func(ctx context.Context, actor string) (messages.MachineEnrolled, error) {
		return g.Space.Enroll(ctx, messages.EnrolMachine{TokenHash: hashOf(actor), Parent: messages.Principal{Owner: g.boss.Owner, Actor: g.boss.Actor},
			Principal: messages.Principal{Owner: g.boss.Owner, Actor: actor}, Allowance: messages.Allowance{Publish: []string{"demo.a"}}})
	}
	return []short{
		{label: "cotal:host-registration:main", prefix: "operations/registration-",
			work: func(ctx context.Context, n int) error {
				_, err := g.Space.RegisterHostInstance(ctx, "svc_x", registered(n), svc)
				return err
			},
			refused: func(ctx context.Context, n int) error {
				_, err := g.Space.RegisterHostInstance(ctx, "svc_x", registered(1), messages.Principal{Owner: g.boss.Owner, Actor: "other"})
				return err
			}},
		{label: "cotal:remote-manager-maintenance:main", prefix: "operations/eviction-",
			work: func(ctx context.Context, n int) error {
				_, err := g.Space.EvictFamily(ctx, messages.EvictFamily{Endpoint: jobs, Instance: kept, Principals: []messages.Principal{keeper}})
				return err
			},
			refused: func(ctx context.Context, n int) error {
				_, err := g.Space.RepairInstance(ctx, jobs, jobsInstance)
				return err
			}},
		{label: "cotal:run-admitter:main", prefix: "operations/run-admission-", work: func(ctx context.Context, n int) error {
			_, err := g.Space.AdmitRun(ctx, g.admission(1000+n))
			return err
		}, refused: func(ctx context.Context, n int) error {
			ask := g.admission(1000 + n)
			ask.Controller.Instance = registered(99)
			_, err := g.Space.AdmitRun(ctx, ask)
			return err
		}},
		{label: "cotal:run-attempt-reader:main", prefix: "operations/run-journal-", work: func(ctx context.Context, n int) error {
			ask := g.admission(2000 + n)
			if _, err := g.Space.AdmitRun(ctx, ask); err != nil {
				return err
			}
			question, _, _ := g.attempt(g.TB.(*testing.T), ask.Run, 1)
			_, err := g.Space.AttemptRun(ctx, question)
			return err
		}},
		{label: "cotal:provisioner:main", prefix: "operations/provisioning-", work: func(ctx context.Context, n int) error {
			_, err := enroll(ctx, fmt.Sprintf("made_%d", n))
			return err
		}},
		{label: "cotal:deprovisioner:main", prefix: "operations/deprovisioning-", alone: true, work: func(ctx context.Context, n int) error {
			name := fmt.Sprintf("gone_%d", n)
			made, err := enroll(g.Context(), name)
			if err != nil {
				return err
			}
			g.Poll("what was made to be removed", func() bool {
				if status := g.Call("DELETE", "/v1/grants/"+g.boss.Owner+"/"+name, nil, nil); status != http.StatusOK {
					g.Errorf("revoke: %d", status)
				}
				_, err := g.js.Consumer(g.Context(), "DM", "dm-"+made.Grant.UID)
				return errors.Is(err, jetstream.ErrConsumerNotFound)
			})
			return nil
		}},
		g.readiness(),
	}
}

// admission is the same question for the same n.
func (g *shortlist) admission(n int) messages.AdmitRun {
	m := g.signed(runrequest.Start, runrequest.Body{})
	return messages.AdmitRun{Controller: g.controller(), Run: fmt.Sprintf("run-%032x", n), Request: runrequest.Forward(m)}
}

// readiness reads of one service after the other; the connection ends when the next one
// is read.
func (g *shortlist) readiness() short {
	owner := messages.Principal{Owner: g.Space.PlatformOwner(), Actor: "svc"}
	revision := uint64(0)
	read := func(ctx context.Context, endpoint string) error {
		const name = "rrrrrrrrrrrrrrrrrrrrrrrrrr"
		if _, err := g.Space.ObserveGate(g.Context(), endpoint, name); errors.Is(err, messages.InstanceNotFound) {
			if _, err := g.Space.RegisterHostInstance(g.Context(), endpoint, name, owner); err != nil {
				return err
			}
		}
		g.mu.Lock()
		revision++
		g.assigned = messages.Assignment{Account: g.account, Revision: revision, Endpoint: endpoint, Instance: name}
		at := messages.PlatformPlace{Space: "main", Account: g.account, Revision: revision, Endpoint: endpoint, Instance: name}
		g.mu.Unlock()
		_, err := g.Space.Readiness(ctx, at)
		return err
	}
	return short{label: "cotal:platform-readiness:main:ready-", prefix: "readiness/ready-",
		work: func(ctx context.Context, n int) error { return read(ctx, fmt.Sprintf("ready-%d", n)) },
		over: func(n int) {
			if err := read(g.Context(), "last"); err != nil && !messages.Describe(err).Retryable {
				g.Error(err)
			}
		}}
}
