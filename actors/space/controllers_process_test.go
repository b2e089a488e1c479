package space_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// Where the server is a process of its own, as it is in life.
func TestControllersOnAServerApart(t *testing.T) {
	t.Parallel()
	program := natsdtest.Build(t)
	t.Run("lives on over its credentials", func(t *testing.T) { t.Parallel(); livesOn(t, program) })
	t.Run("the issuer dies in the middle", func(t *testing.T) { t.Parallel(); diesInTheMiddle(t, program) })
}

// apart opens a space on a server in a process of its own.
func apart(t *testing.T, program string, change func(*space.Config)) (*controlled, *natsdtest.Process) {
	t.Helper()
	w := world.New(t, publicly, change)
	w.StopBroker()
	server := natsdtest.Run(t, program, w.Dir)
	w.Config.NATSURL = server.URL()
	return newControlled(w), server
}

// livesOn has a controller with nothing but its own keys live on over the end of its
// credentials, and ask for a retirement; and one that was superseded gets nothing any
// more.
func livesOn(t *testing.T, program string) {
	c, _ := apart(t, program, func(c *space.Config) { c.ControllerLifetime = 5 * time.Second })
	p := c.program(c.register())
	proof := c.IDToken("boss")
	p.asks("prepare", proof, p.request("prepare"))
	first := p.asks("activate", proof, p.request("activate"))
	if life := first.ExpiresAt.Sub(first.IssuedAt); life != 5*time.Second {
		t.Errorf("it runs out after %s", life)
	}

	// What it was given works: work goes out, is done, and comes back.
	came := make(chan struct{}, 16) // more than it loses connections
	var supervisor *nats.Conn
	var err error
	p.Poll("the supervisor to be let in", func() bool { // on a slow day it runs out on the way
		p.asks("renew", proof, p.request("renew"))
		supervisor, err = p.dial("supervisor", nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0),
			nats.IgnoreAuthErrorAbort(), nats.ReconnectHandler(func(*nats.Conn) { came <- struct{}{} }))
		return err == nil
	})
	t.Cleanup(supervisor.Close)
	done, err := supervisor.SubscribeSync(p.subject("done.>"))
	if err == nil {
		err = supervisor.FlushTimeout(world.Patience)
	}
	if err != nil {
		t.Fatal(err)
	}
	works := func() {
		t.Helper()
		var executor *nats.Conn
		p.Poll("the executor to be let in", func() bool {
			p.asks("renew", proof, p.request("renew"))
			executor, err = p.dial("executor", nats.NoReconnect())
			return err == nil
		})
		defer executor.Close()
		if err := executor.Publish(p.subject("done.job"), []byte("42")); err != nil {
			t.Fatal(err)
		}
		if m, err := done.NextMsg(world.Patience); err != nil || string(m.Data) != "42" {
			t.Fatalf("the supervisor hears %v", err)
		}
	}
	works()
	former := p.held("supervisor")
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	renewed, crossed := 0, false
	late := time.After(world.Patience)
	for renewed < 20 || !crossed {
		select {
		case <-tick.C:
			if renewed < 20 || time.Until(p.expires["supervisor"]) < 3*time.Second {
				p.asks("renew", proof, p.request("renew"))
				renewed++
			}
		case <-came:
			crossed = true
		case <-late:
			t.Fatal("it does not come to the end of its credentials")
		}
	}
	works()
	renewal := p.held("supervisor")
	p.hold("supervisor", former)
	p.Poll("what has run out to let nobody in", func() bool { // a server counts in whole seconds
		nc, err := p.dial("supervisor", nats.NoReconnect())
		if err == nil {
			nc.Close()
		}
		return world.Refused(err)
	})
	p.hold("supervisor", renewal)

	retiresOverTheRail(t, p, proof)
	next := c.program(c.register())
	for _, door := range []string{"prepare", "activate", "renew", "session", "retire"} {
		if status, answer := p.ask(door, proof, p.request(door)); status != http.StatusConflict || len(answer.Credentials) > 0 || answer.Receipt != "" ||
			answer.Error.Reason != messages.InstanceSuperseded.Reason {
			t.Errorf("%s of a superseded one: %d %+v", door, status, answer)
		}
	}
	next.asks("prepare", proof, next.request("prepare"))
	next.asks("activate", proof, next.request("activate"))
}

// takenBy tells when an actor has begun on a controller's question.
func takenBy(path string, taken chan<- struct{}) func(string) []actor.ReceiverMiddleware {
	return func(of string) []actor.ReceiverMiddleware {
		if of != path {
			return nil
		}
		return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
				next(c, e)
				if _, is := e.Message.(messages.AskController); is {
					select {
					case taken <- struct{}{}:
					default: // nobody awaits that many
					}
				}
			}
		}}
	}
}

// diesInTheMiddle kills the issuer while it works on a request that the server, which
// stands still, keeps it from ending: the controller has its answer all the same, and
// asks again for the same one; the ledger has it once.
func diesInTheMiddle(t *testing.T, program string) {
	taken := make(chan struct{}, 64) // more than are asked in the middle of anything
	c, server := apart(t, program, func(c *space.Config) { c.Middleware = takenBy("plane/issuer", taken) })
	p := c.program(c.register())
	proof := c.IDToken("boss")
	p.asks("prepare", proof, p.request("prepare"))
	p.asks("activate", proof, p.request("activate"))
	for _, how := range []string{"panic", "stop", "disconnect"} {
		before := p.recorded()
		for len(taken) > 0 {
			<-taken
		}
		life := p.Actor("plane/issuer").Generation
		ask := p.request("renew")
		server.Pause(t)
		answered := make(chan int, 1) // there is one
		go func() {
			defer close(answered)
			status, _ := p.ask("renew", proof, ask)
			answered <- status
		}()
		select {
		case <-taken:
		case <-time.After(world.Patience):
			t.Error("the issuer is not asked")
		}
		if _, _, err := p.Space.Kill(t.Context(), "plane/issuer", how); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		server.Resume(t)
		if status := <-answered; status != http.StatusOK && status != http.StatusServiceUnavailable {
			t.Errorf("%s: answered %d", how, status)
		}
		p.AwaitLife("plane/issuer", life+1)
		first, again := p.asks("renew", proof, ask), p.asks("renew", proof, ask)
		if !reflect.DeepEqual(first, again) {
			t.Errorf("%s: answered %+v, then %+v", how, first, again)
		}
		if got := p.recorded(); got != before+len(kindsOfKeys) {
			t.Errorf("%s: %d credentials more are recorded, not %d", how, got-before, len(kindsOfKeys))
		}
	}
}

// recorded counts the credentials of the instance in the ledger, whether they have run
// out or not.
func (c *controlled) recorded() int {
	c.Helper()
	js, err := jetstream.New(c.Owner("ctrl"))
	if err != nil {
		c.Fatal(err)
	}
	stream, err := js.Stream(c.Context(), broker.AuthorityStream("main"))
	if err != nil {
		c.Fatal(err)
	}
	info, err := stream.Info(c.Context(), jetstream.WithSubjectFilter("$KV."+broker.AuthorityBucket("main")+".icred."+runner+"."+run+".*"))
	if err != nil {
		c.Fatal(err)
	}
	return len(info.State.Subjects)
}

// retiresOverTheRail has the controller ask for the end of a worker of its owner, who is
// connected.
func retiresOverTheRail(t *testing.T, p *program, proof string) {
	t.Helper()
	var worker world.Grant
	if status := p.Call("POST", "/v1/grants", map[string]any{"sub": "boss", "actor": "worker", "publish": []string{"demo.>"}}, &worker); status != http.StatusCreated {
		t.Fatalf("grant: %d", status)
	}
	token, status := p.Exchange("boss", "worker")
	if status != http.StatusOK {
		t.Fatalf("exchange: %d", status)
	}
	dropped := make(chan struct{})
	p.With(worker, token).Connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(dropped) }))
	ask := p.request("retire")
	ask["target"] = map[string]any{"owner": worker.Owner, "actor": worker.Actor, "uid": worker.UID, "op_id": ledger.OperationOf(worker.UID), "user": p.make("requester")}
	p.asks("retire", proof, ask)
	nc := p.connect("requester")
	subject := broker.RetireSubject("main", messages.Principal{Owner: worker.Owner, Actor: worker.Actor}, worker.UID)
	var reply *nats.Msg
	p.Poll("the rail to be served", func() bool {
		var err error
		reply, err = nc.Request(subject, []byte(`{"wait_ms":30000}`), world.Patience)
		if err != nil && !errors.Is(err, nats.ErrNoResponders) {
			t.Fatal(err)
		}
		return err == nil
	})
	var got struct {
		Outcome string
		OpID    string `json:"op_id"`
	}
	if err := json.Unmarshal(reply.Data, &got); err != nil || got.Outcome != "retired" || got.OpID != ledger.OperationOf(worker.UID) {
		t.Errorf("the rail says %s, %v", reply.Data, err)
	}
	select {
	case <-dropped:
	case <-time.After(world.Patience):
		t.Error("the worker is still connected")
	}
}
