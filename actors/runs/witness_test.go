package runs_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/natsd"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/run"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/actors/runs"
	"github.com/cotal-ai/authplane/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var requests = flag.Int("requests", 10_000, "how many requests are witnessed on a cluster")

const (
	jobs     = "jobs"
	instance = "jobsjobsjobsjobsjobsjobs01"
	atOnce   = 16
)

var alice = messages.Principal{Owner: "u_aaaaaaaaaaaaaaaaaaaaaaaaaa", Actor: "laptop"}

// triangle is a cluster of which caller, controller and observer each know another
// server.
type triangle struct {
	*natsd.Group
	material *trust.Material
	key      nkeys.KeyPair
	desk     *run.Desk
	uid      string
}

func newTriangle(t *testing.T) *triangle {
	t.Helper()
	dir := natsdtest.Chain(t, "acme")
	s := &triangle{Group: natsdtest.Cluster(t, dir, 3), material: natsdtest.Load(t, dir, "acme"), uid: names.NewUID()}
	var err error
	if s.key, err = nkeys.CreateUser(); err != nil {
		t.Fatal(err)
	}
	certificates, err := run.NewCertificates("acme", s.material.Signer(s.material.Signing[trust.DATA].Public))
	if err != nil {
		t.Fatal(err)
	}
	s.desk = &run.Desk{Space: "acme", Certificates: certificates, Now: time.Now}
	return s
}

func (s *triangle) connect(t *testing.T, server int) *nats.Conn {
	t.Helper()
	return natsdtest.Connect(t, s.Server(server).URL(), s.material, trust.DATA, natsdtest.Everything())
}

// signed is a request of alice's.
func (s *triangle) signed(t *testing.T) *nats.Msg {
	t.Helper()
	public, err := s.key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := s.desk.Certificates.Sign(run.Caller{Principal: alice, UID: s.uid, Key: public, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	m, err := runrequest.Sign(s.key, certificate, "acme", runrequest.Subject{Endpoint: jobs, Instance: runrequest.Any, Command: runrequest.Start, Caller: alice, UID: s.uid,
		Nonce: runrequest.NewNonce()}, runrequest.Body{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func controller() messages.RunController {
	return messages.RunController{Endpoint: jobs, Instance: instance, Principal: messages.Principal{Owner: alice.Owner, Actor: "runner"}}
}

// Caller, controller and observer are on three servers. Whatever the controller gets is
// witnessed, by its signature and by who saw it, however the servers order it. How many
// the observer had not seen when the controller asked is told: those a flush would miss.
func TestNoWitnessIsMissed(t *testing.T) {
	s := newTriangle(t)
	caller, controlling, observing := s.connect(t, 0), s.connect(t, 1), s.connect(t, 2)
	seen := run.NewObservations(nil)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := runs.Observe(ctx, observing, seen); err != nil {
		t.Fatal(err)
	}
	var late, unseen, unsigned atomic.Int64
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var working sync.WaitGroup
	_, err := controlling.QueueSubscribe("run."+jobs+".>", jobs, func(m *nats.Msg) {
		working.Go(func() {
			ask := messages.AwaitRequest{Subject: m.Subject, Digest: runrequest.Digest(m.Data)}
			if seen.Await(gone, ask) != nil {
				late.Add(1)
			}
			if seen.Await(t.Context(), ask) != nil {
				unseen.Add(1)
			}
			if s.desk.CheckAdmission(messages.AdmitRun{Controller: controller(), Run: fmt.Sprintf("run-%032x", 1), Request: runrequest.Forward(m)}) != nil {
				unsigned.Add(1)
			}
			_ = m.Respond(nil)
		})
	})
	if err == nil {
		err = controlling.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	// Interest travels to the caller's server by itself.
	natsdtest.Eventually(t, "service and observer are heard of", func() error {
		if _, err := caller.RequestMsg(s.signed(t), 5*time.Second); err != nil {
			return err
		}
		if known, _ := seen.Remembered(); known == 0 {
			return errors.New("the observer hears nothing yet")
		}
		return nil
	})
	late.Store(0)
	unseen.Store(0)
	answered := s.ask(t, caller)
	working.Wait()
	t.Logf("%d of %d answered; %d were not there yet when asked for, %d never; %d signatures do not hold", answered, *requests, late.Load(), unseen.Load(), unsigned.Load())
	if answered != *requests || unseen.Load() != 0 || unsigned.Load() != 0 {
		t.Error("a witness was missed")
	}
}

// ask makes all requests, some at once, and counts the answers.
func (s *triangle) ask(t *testing.T, caller *nats.Conn) int {
	t.Helper()
	var answered atomic.Int64
	todo := make(chan struct{}, *requests) // capacity: all of them
	for range *requests {
		todo <- struct{}{}
	}
	close(todo)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for range todo {
				if _, err := caller.RequestMsg(s.signed(t), 20*time.Second); err == nil {
					answered.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(answered.Load())
}

// ledgerOf is a ledger in which alice may start runs.
type ledgerOf struct{ s *triangle }

func (l ledgerOf) Instance(_ context.Context, ask messages.ReadInstance) (messages.Instance, error) {
	return messages.Instance{Endpoint: ask.Endpoint, Name: ask.Instance, State: messages.InstanceOpen, Generation: 1, Principal: controller().Principal}, nil
}

func (l ledgerOf) Authority(_ context.Context, ask messages.ReadAuthority) (messages.Authority, error) {
	return messages.Authority{HasHead: true, Head: messages.Head{Principal: alice, UID: l.s.uid, State: messages.HeadActive},
		HasGrant: true, Grant: messages.Grant{Principal: alice, Kind: messages.Interactive, UID: l.s.uid, Revision: 1, State: messages.GrantLive,
			Allowance: messages.Allowance{Publish: []string{"run.>"}}}}, nil
}

// On three replicas two controllers ask at once, each over a connection that may write
// the rows of its one run and nothing else: there is one admission and one driver.
func TestRunsAreAdmittedOnceOnThreeReplicas(t *testing.T) {
	s := newTriangle(t)
	d, err := broker.NewDialer(broker.Config{URL: s.URL(), Space: "acme", Material: s.material, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	dial := func(role broker.Role) *broker.Conn {
		t.Helper()
		c, err := d.Dial(t.Context(), role, func(*broker.Conn) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Sever(); <-c.Ended() })
		return c
	}
	own := [2]string{names.NewUID(), names.NewUID()}
	cfg := stream.Config{Space: "acme", Replicas: 3, Instance: own[0]}.Records()
	opener := dial(broker.Barrier(own[0]))
	natsdtest.Eventually(t, "the records to be there", func() error {
		_, err := stream.Open(t.Context(), opener.NATS(), cfg, stream.Installation{})
		return err
	})
	for n := range 5 {
		name := fmt.Sprintf("run-%032x", n+1)
		request := runrequest.Forward(s.signed(t))
		desk := func(process int, role broker.Role) *run.Desk {
			of := cfg
			of.Instance = own[process]
			at := *s.desk
			at.Records = ledger.NewStore(stream.New(dial(role).NATS(), of, stream.NewLanes(stream.MaxLanes)), ledger.DefaultPatience())
			at.Authority = ledgerOf{s}
			at.Receipts = run.ByGate(at.Authority)
			return &at
		}
		var revisions [2]uint64
		var issued atomic.Int64
		var both sync.WaitGroup
		for p := range 2 {
			admits := desk(p, broker.RunAdmitter(own[p], jobs, name, run.RequestID("acme", request)))
			both.Go(func() {
				got, err := admits.Admit(t.Context(), messages.AdmitRun{Controller: controller(), Run: name, Request: request})
				if err != nil {
					t.Error(err)
				}
				revisions[p] = got.Revision
			})
		}
		both.Wait()
		if revisions[0] != revisions[1] || revisions[0] == 0 {
			t.Errorf("admitted at %v", revisions)
		}
		for p := range 2 {
			ask := messages.AttemptRun{Controller: controller(), Run: name, Request: fmt.Sprintf("question-%d-of-two-controllers", p), Takeover: "t", Attempt: 1,
				Driver: publicKey(t), Mediator: publicKey(t)}
			reserves := desk(p, broker.RunReserver(own[p], jobs, name, 1, ""))
			both.Go(func() {
				switch _, _, err := reserves.Reserve(t.Context(), ask, time.Hour, &runjournal.History{}); {
				case err == nil:
					issued.Add(1)
				case !errors.Is(err, messages.RunAttemptTaken):
					t.Error(err)
				}
			})
		}
		both.Wait()
		if issued.Load() != 1 {
			t.Errorf("%d drivers", issued.Load())
		}
	}
}

func publicKey(t *testing.T) string {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}
