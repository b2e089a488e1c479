package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

const (
	servedAt = "svc_a"
	servedBy = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// servant is one process of a service: it registers, is issued its credential, and
// serves over a connection that the callout let in by that.
type servant struct {
	w      *world.World
	epoch  uint64
	issued messages.InstanceCredentialIssued
	conn   *nats.Conn
	// asked says that somebody asks what it answers late, released lets it.
	asked    chan struct{}
	released chan struct{}
	// late is what came of the late answer.
	late chan error
	// dropped says that its connection was lost, returned counts how often it was let in
	// again.
	dropped  chan struct{}
	returned atomic.Int32
}

func startServant(w *world.World, g world.Grant) *servant {
	w.Helper()
	principal := messages.Principal{Owner: g.Owner, Actor: g.Actor}
	registered, err := w.Space.RegisterHostInstance(w.Context(), servedAt, servedBy, principal)
	if err != nil {
		w.Fatalf("register: %v", err)
	}
	s := &servant{w: w, epoch: registered.Instance.Epoch, asked: make(chan struct{}, 1), released: make(chan struct{}), late: make(chan error, 1), dropped: make(chan struct{}, 1)}
	if s.issued, err = w.Space.IssueInstanceCredential(w.Context(), servedAt, servedBy, s.epoch, time.Minute); err != nil {
		w.Fatalf("issue: %v", err)
	}
	// It comes back whenever it is dropped, and is not put off by any refusal.
	s.conn = w.With(g, s.issued.Bearer.Reveal()).Connect(nats.MaxReconnects(-1), nats.ReconnectWait(5*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.IgnoreAuthErrorAbort(), nats.ErrorHandler(func(_ *nats.Conn, on *nats.Subscription, err error) {
			if on != nil && errors.Is(err, nats.ErrPermissionViolation) {
				w.Errorf("it may not be asked at %s", on.Subject)
			}
		}),
		nats.DisconnectErrHandler(func(*nats.Conn, error) {
			select {
			case s.dropped <- struct{}{}:
			default:
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { s.returned.Add(1) }))
	s.serve()
	return s
}

func (s *servant) serve() {
	s.w.Helper()
	service, err := micro.AddService(s.conn, micro.Config{Name: servedAt, Version: "1.0.0"})
	if err != nil {
		s.w.Fatal(err)
	}
	who := []byte(fmt.Sprint(s.epoch))
	for subject, answer := range map[string]func(micro.Request){
		"svc.ask": func(r micro.Request) { _ = r.Respond(who) }, // to an asker who may have gone
		"svc.late": func(r micro.Request) {
			s.asked <- struct{}{}
			<-s.released
			s.late <- errors.Join(r.Respond(who), s.conn.FlushTimeout(50*time.Millisecond))
		},
	} {
		name := map[string]string{"svc.ask": "ask", "svc.late": "late"}[subject]
		if err := service.AddEndpoint(name, micro.HandlerFunc(answer), micro.WithEndpointSubject(subject)); err != nil {
			s.w.Fatal(err)
		}
	}
	if err := s.conn.FlushTimeout(world.Patience); err != nil {
		s.w.Fatal(err)
	}
}

// TestAServiceThatRestartsFencesWhoWasBefore has a service restart while its former
// process is in the middle of an answer and comes back as fast as it can: it is let in
// no more, and nothing that it answers reaches anybody.
func TestAServiceThatRestartsFencesWhoWasBefore(t *testing.T) {
	t.Parallel()
	w := world.Open(t)
	var g world.Grant
	if status := w.Call("POST", "/v1/grants", map[string]any{"sub": "server", "actor": "svc", "scope": []string{},
		"publish": []string{"svc.>"}, "subscribe": []string{"svc.>"}, "serve": true}, &g); status != http.StatusCreated {
		t.Fatalf("grant: %d", status)
	}
	asker := w.Person("asker", "laptop", "svc.>").Connect()
	asks := func(want string) {
		t.Helper()
		if answer, err := asker.Request("svc.ask", nil, world.Patience); err != nil || string(answer.Data) != want {
			t.Fatalf("%+v answers, %v, want %s", answer, err, want)
		}
	}
	old := startServant(w, g)
	asks("0")
	fenced := make(chan messages.Instance, 1)
	go func() {
		gate, err := w.Space.AwaitFence(w.Context(), servedAt, servedBy, 0)
		if err != nil {
			t.Errorf("await the fence: %v", err)
		}
		fenced <- gate
	}()
	replies := asker.NewRespInbox()
	inbox, err := asker.SubscribeSync(replies)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(asker.Flush(), asker.PublishRequest("svc.late", replies, nil)); err != nil {
		t.Fatal(err)
	}
	within(t, old.asked, "the late question")

	next := startServant(w, g)
	within(t, old.dropped, "the former process to be dropped")
	if gate := within(t, fenced, "the fence"); gate.State == messages.InstanceOpen && gate.Epoch == 0 {
		t.Errorf("fenced by %+v", gate)
	}
	if next.epoch != 1 || next.issued.CredentialID == old.issued.CredentialID {
		t.Errorf("the next one is %d with %s", next.epoch, next.issued.CredentialID)
	}
	close(old.released)
	if err := within(t, old.late, "the late answer"); err == nil {
		t.Error("the late answer was taken")
	}
	asks("1")
	deniedAs(t, w, g, messages.InstanceSuperseded)
	if nc, err := w.With(g, old.issued.Bearer.Reveal()).Dial(nats.NoReconnect()); !world.Refused(err) {
		t.Errorf("the former process comes in anew: %v, %v", nc, err)
	}
	old.conn.Close() // what it kept to send is gone with it
	asks("1")
	if n, _, err := inbox.Pending(); n != 0 || err != nil {
		t.Errorf("%d late answers arrive, %v", n, err)
	}
	if n := old.returned.Load(); n != 0 {
		t.Errorf("the former process was let in %d times more", n)
	}
	// The one that counts has its credential renewed, and goes on.
	renewed, err := w.Space.IssueInstanceCredential(w.Context(), servedAt, servedBy, 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	w.With(g, renewed.Bearer.Reveal()).Connect(nats.NoReconnect())
	if _, err := w.Space.IssueInstanceCredential(w.Context(), servedAt, servedBy, 0, time.Minute); !errors.Is(err, messages.InstanceSuperseded) {
		t.Errorf("the former process is issued something: %v", err)
	}
}

// deniedAs waits until somebody was refused for a reason, and insists that it can be
// explained.
func deniedAs(t *testing.T, w *world.World, g world.Grant, why messages.Error) {
	t.Helper()
	w.Poll("a denial as "+why.Reason, func() bool {
		denials, err := w.Space.Denials(w.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range denials {
			if d.Reason == why.Reason && d.Principal == g.Owner+"."+g.Actor {
				return d.Kind == messages.Denied && d.Code == why.Code && d.ID != "" && d.Remedy != ""
			}
		}
		return false
	})
}
