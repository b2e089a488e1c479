package space_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

const (
	endpoint = "svc_a"
	instance = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	subject  = "svc.ask"
)

// stage is a space, somebody who serves, and somebody who asks.
type stage struct {
	*world.World
	svc, asker world.Person
	dialer     *broker.Dialer
}

func newStage(t *testing.T, change ...func(*space.Config)) *stage {
	t.Helper()
	w := world.Open(t, change...)
	s := &stage{World: w, asker: w.Person("asker", "laptop", "svc.>")}
	var g world.Grant
	if status := w.Call("POST", "/v1/grants", map[string]any{
		"sub": "server", "actor": "svc", "scope": []string{}, "publish": []string{"svc.>"}, "subscribe": []string{"svc.>"}, "serve": true,
	}, &g); status != http.StatusCreated {
		t.Fatalf("grant: %d", status)
	}
	token, status := w.Exchange("server", "svc")
	if status != http.StatusOK {
		t.Fatalf("exchange: %d", status)
	}
	s.svc = w.With(g, token)
	material, err := trust.Load(t.Context(), trust.Directory(w.Config.SecretsDir), "main")
	s.must(err)
	s.dialer, err = broker.NewDialer(broker.Config{URL: w.Config.NATSURL, Space: "main", Material: material, Logger: slog.New(slog.DiscardHandler)})
	s.must(err)
	return s
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) principal() messages.Principal {
	return messages.Principal{Owner: s.svc.Grant.Owner, Actor: s.svc.Grant.Actor}
}

func (s *stage) register() (messages.InstanceRegistered, error) {
	return s.Space.RegisterHostInstance(s.Context(), endpoint, instance, s.principal())
}

func (s *stage) registers() messages.InstanceRegistered {
	s.Helper()
	done, err := s.register()
	s.must(err)
	return done
}

// serve runs the service as the process of an epoch, which it says in its answers.
func (s *stage) serve(epoch uint64, more ...nats.Option) *nats.Conn {
	s.Helper()
	unheard := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}) // nobody here may be asked as $SRV
	nc := s.svc.Connect(append(more, unheard)...)
	service, err := micro.AddService(nc, micro.Config{Name: "svc", Version: "1.0.0"})
	s.must(err)
	s.must(service.AddEndpoint("ask", micro.HandlerFunc(func(r micro.Request) {
		_ = r.Respond([]byte(fmt.Sprint(epoch))) // to an asker who may have gone
	}), micro.WithEndpointSubject(subject)))
	s.must(nc.FlushTimeout(world.Patience))
	return nc
}

// answers is who answers: an epoch, or nobody.
func (s *stage) answers(asker *nats.Conn) string {
	s.Helper()
	answer, err := asker.Request(subject, nil, world.Patience)
	if errors.Is(err, nats.ErrNoResponders) {
		return "nobody"
	}
	s.must(err)
	return string(answer.Data)
}

// store is the ledger, over a connection that may write the rows of the instance.
func (s *stage) store() (*ledger.Store, *broker.Conn) {
	s.Helper()
	backend, conn := s.backend()
	return ledger.NewStore(backend, ledger.DefaultPatience()), conn
}

func (s *stage) backend() (ledger.Backend, *broker.Conn) {
	s.Helper()
	conn, err := s.dialer.Dial(s.Context(), broker.HostRegistration(endpoint, instance), func(*broker.Conn) error { return nil })
	s.must(err)
	s.Cleanup(func() { s.must(conn.Close(s.Context())) })
	config := stream.Config{Space: "main", Replicas: 1, Instance: instance}
	return stream.New(conn.NATS(), config, stream.NewLanes(1)), conn
}

// issue gives the process that is registered a credential, as long as it is that one.
func (s *stage) issue(to messages.InstanceRegistered, id string) error {
	store, _ := s.store()
	gate, _, err := store.Get(s.Context(), ledger.InstanceKey(endpoint, instance))
	s.must(err)
	value, err := ledger.EncodeInstanceCredential(ledger.InstanceCredential{ID: id, Holder: s.principal(), Endpoint: endpoint, Instance: instance,
		Epoch: to.Instance.Epoch, State: ledger.CredentialActive, Expires: time.Now().Add(time.Hour).Truncate(time.Second)})
	s.must(err)
	gate.Revision = to.Revision
	_, err = store.Apply(s.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Create(ledger.InstanceCredentialKey(endpoint, instance, id), value), ledger.Touch(gate)}})
	return err
}

func (s *stage) credential(id string) ledger.CredentialState {
	s.Helper()
	store, _ := s.store()
	row, found, err := store.Get(s.Context(), ledger.InstanceCredentialKey(endpoint, instance, id))
	s.must(err)
	if !found {
		return "absent"
	}
	c, err := ledger.DecodeInstanceCredential(row)
	s.must(err)
	return c.State
}

func (s *stage) gate() messages.Instance {
	s.Helper()
	gate, err := s.Space.ObserveGate(s.Context(), endpoint, instance)
	s.must(err)
	return gate
}

// ended insists that no connection of a call is left, and that there were some.
func (s *stage) ended(atLeast int) {
	s.Helper()
	met := 0
	for _, c := range s.Space.Connections() {
		if c.Label == "cotal:host-registration:main:"+endpoint || c.Label == "cotal:remote-manager-maintenance:main:"+endpoint {
			if met++; !c.Ended {
				s.Errorf("%s has not ended", c.Label)
			}
		}
	}
	if met < atLeast {
		s.Errorf("%d connections of calls are listed", met)
	}
}
