package probe_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/probe"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var instance = strings.Repeat("a", 26)

type network struct {
	*testing.T
	space *natsdtest.Space
}

func (n network) connect() *nats.Conn {
	n.Helper()
	return natsdtest.Connect(n, n.space.URL(), n.space.Material, trust.DATA, natsdtest.Everything())
}

// serve runs a service that says what process of which instance it is.
func (n network) serve(name, instance, epoch string) micro.Service {
	n.Helper()
	nc := n.connect()
	service, err := micro.AddService(nc, micro.Config{Name: name, Version: "1.2.3",
		Metadata: map[string]string{probe.MetadataInstance: instance, probe.MetadataEpoch: epoch}})
	n.must(err)
	n.must(service.AddEndpoint("ask", micro.HandlerFunc(func(r micro.Request) {
		_ = r.Respond(nil) // to an asker who may have gone
	}), micro.WithEndpointSubject(name+".ask")))
	n.must(nc.Flush())
	return service
}

// say answers a subject with what a service would not.
func (n network) say(subject, answer string) {
	n.Helper()
	nc := n.connect()
	_, err := nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(answer)) })
	n.must(err)
	n.must(nc.Flush())
}

func (n network) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

func TestAsking(t *testing.T) {
	t.Parallel()
	n := network{t, natsdtest.NewSpace(t, "main")}
	asker := n.connect()
	ask := func(name string, epoch uint64) messages.Readiness {
		t.Helper()
		answer, err := probe.Ask(t.Context(), asker, messages.ReadReadiness{Endpoint: name, Instance: instance, Epoch: epoch})
		n.must(err)
		if answer.Endpoint != name || answer.Instance != instance || answer.Epoch != epoch {
			t.Errorf("the answer is about %+v", answer)
		}
		return answer
	}
	if got := ask("nobody", 0); got.Serving {
		t.Errorf("nobody serves, and yet %+v", got)
	}
	n.serve("busy", strings.Repeat("b", 26), "4")
	n.serve("busy", instance, "3")
	n.say("$SRV.PING.busy", "{")
	n.say("$SRV.PING.busy", `{"id":"a.>","metadata":{"instance":"`+instance+`","epoch":"4"}}`)
	if got := ask("busy", 4); got.Serving {
		t.Errorf("another instance, or another process, is taken for it: %+v", got)
	}
	began := time.Now().Add(-time.Minute)
	n.serve("busy", instance, "4")
	for range 3 {
		if _, err := asker.Request("busy.ask", nil, 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	got := ask("busy", 4)
	if !got.Serving || got.Version != "1.2.3" || got.Started.Before(began) || len(got.Endpoints) != 1 {
		t.Fatalf("it serves, and the answer is %+v", got)
	}
	if e := got.Endpoints[0]; e.Name != "ask" || e.Subject != "busy.ask" || e.Requests > 3 || e.Errors != 0 {
		t.Errorf("it serves %+v", e)
	}
}

// A service that says it is there and nothing else does not serve.
func TestHalfAServiceDoesNotServe(t *testing.T) {
	t.Parallel()
	n := network{t, natsdtest.NewSpace(t, "main")}
	n.say("$SRV.PING.half", `{"id":"one","metadata":{"instance":"`+instance+`","epoch":"0"}}`)
	n.say("$SRV.INFO.half.one", "no JSON")
	of := messages.ReadReadiness{Endpoint: "half", Instance: instance}
	if got, err := probe.Ask(t.Context(), n.connect(), of); err != nil || got.Serving {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestABrokerThatIsAwayIsNoAnswer(t *testing.T) {
	t.Parallel()
	n := network{t, natsdtest.NewSpace(t, "main")}
	asker := n.connect()
	asker.Close()
	of := messages.ReadReadiness{Endpoint: "busy", Instance: instance}
	if got, err := probe.Ask(t.Context(), asker, of); !errors.Is(err, messages.BrokerAway) || got.Serving {
		t.Errorf("got %+v, %v", got, err)
	}
}
