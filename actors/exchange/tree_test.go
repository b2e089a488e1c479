package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"crypto/ed25519"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testSpace  = "demo"
	testIssuer = "https://login.example.test"
)

// space is a small space: the exchange, and in place of the plane two actors that
// answer from the ledger in memory.
type space struct {
	t          *testing.T
	tree       *supervisor.Tree
	mu         sync.Mutex
	gate       func(context.Context, any) // what an asked actor does before it answers
	address    *Address
	public     *Address
	keyring    *identity.Keyring
	capability messages.Secret
	idp        jose.Signer
	client     *http.Client
	backend    ledger.Backend
	// operates answers what is asked about operations and servers.
	operates func(any) (any, error)
}

// teller answers what it is asked beside its Receive, as the plane's actors do.
type teller struct {
	life   *supervisor.Life
	answer func(context.Context, any) (any, error)
}

func (a *teller) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *supervisor.Open:
		a.life.Opened()
	case *supervisor.Drain:
		a.life.Drained(nil)
	case *supervisor.Close:
		a.life.ClosedWith(nil)
	case messages.ReadAuthority, messages.ListGrants, messages.PutGrant, messages.EditGrant, messages.RevokeGrant, messages.Enrol,
		messages.AskRetirement, messages.ReadRoster, messages.ForgetServer, messages.ObserveServers,
		messages.BeginTakeover, messages.ReadOperation, messages.ListOperations, messages.AwaitOperation:
		to := ctx.Sender()
		a.life.Go("answer", func(ctx context.Context) {
			answer, err := a.answer(ctx, m)
			if err != nil {
				answer = err
			}
			a.life.Reply(to, answer)
		})
	}
}

func (s *space) pass(ctx context.Context, m any) {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate != nil {
		gate(ctx, m)
	}
}

func (s *space) before(gate func(context.Context, any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = gate
}

func (s *space) reader(life *supervisor.Life) actor.Actor {
	reader := ledger.NewReader(ledger.NewStore(s.backend, ledger.DefaultPatience()), nil)
	return &teller{life, func(ctx context.Context, m any) (any, error) {
		s.pass(ctx, m)
		if read, is := m.(messages.ReadAuthority); is {
			return reader.Authority(ctx, read)
		}
		return reader.Grants(ctx)
	}}
}

func (s *space) writer(life *supervisor.Life) actor.Actor {
	writer := ledger.NewWriter(ledger.NewStore(s.backend, ledger.DefaultPatience()), ledger.Options{Instance: "test"})
	return &teller{life, func(ctx context.Context, m any) (any, error) {
		s.pass(ctx, m)
		switch m := m.(type) {
		case messages.PutGrant:
			return writer.PutGrant(ctx, m)
		case messages.EditGrant:
			return writer.EditGrant(ctx, m)
		case messages.RevokeGrant:
			return writer.RevokeGrant(ctx, m)
		case messages.Enrol:
			return writer.Enrol(ctx, m)
		}
		return s.operates(m)
	}}
}

// desk answers in place of the plane's desk, and of its observer.
func (s *space) desk(life *supervisor.Life) actor.Actor {
	return &teller{life, func(ctx context.Context, m any) (any, error) {
		s.pass(ctx, m)
		return s.operates(m)
	}}
}

// Status and the rest are face.Control.
func (s *space) Status() messages.Status {
	return messages.Status{Space: testSpace, State: messages.SpaceReady}
}
func (s *space) Tree() []messages.Actor                             { return nil }
func (s *space) Connections() []messages.Connection                 { return nil }
func (s *space) Denials(context.Context) ([]messages.Denial, error) { return nil, nil }

func (s *space) Events(ctx context.Context) <-chan messages.Event {
	out := make(chan messages.Event)
	go func() { // ends with ctx
		defer close(out)
		<-ctx.Done()
	}()
	return out
}

func (s *space) Kill(_ context.Context, path, how string) (string, uint64, error) {
	way := map[string]supervisor.How{"panic": supervisor.Panic, "stop": supervisor.Stop, "disconnect": supervisor.Disconnect}[how]
	killed, err := s.tree.Kill(path, way)
	if errors.Is(err, supervisor.ErrNotApplicable) {
		err = messages.KillInapplicable.From(err)
	}
	return killed.Path, killed.Generation, err
}

func start(t *testing.T, change func(*Config)) *space {
	t.Helper()
	s := &space{t: t, backend: memory.New(), address: NewAddress(""), public: NewAddress("127.0.0.1:0"), capability: identity.NewCapability(),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: 30 * time.Second}}
	stored, err := identity.GenerateKeyring(testSpace, time.Now())
	must(t, err)
	s.keyring, err = identity.OpenKeyring(testSpace, stored)
	must(t, err)
	config := Config{Space: testSpace, Reader: "plane/reader", Writer: "plane/writer", Desk: "plane/desk", Observer: "plane/observer", Keys: s.keyring, Provider: s.newProvider(), Issuer: testIssuer,
		OwnerSecret: identity.NewOwnerSecret(), Control: s, Capability: s.capability, Address: s.address,
		Public: &PublicConfig{Address: s.public, NATSURL: "nats://127.0.0.1:4222", Sentinel: "sentinel.creds"}, FaultInjection: true}
	if change != nil {
		change(&config)
	}
	root := supervisor.Spec{Name: "space", Group: &supervisor.Group{
		Children: []supervisor.Spec{
			{Name: "plane", Group: &supervisor.Group{Children: []supervisor.Spec{
				{Name: "writer", New: s.writer}, {Name: "reader", New: s.reader}, {Name: "desk", New: s.desk}, {Name: "observer", New: s.desk},
			}}},
			Spec(config),
		},
		Stages: []supervisor.Stage{{Name: "admission", Drain: []string{"exchange"}, Close: []string{"exchange"}}, {Name: "plane", Close: []string{"plane"}}},
	}}
	system := newSystem()
	t.Cleanup(system.Shutdown)
	s.tree, err = supervisor.Start(t.Context(), system, root)
	must(t, err)
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		must(t, s.tree.Close(context.Background()))
	})
	return s
}

// newSystem is an actor system that prints nothing.
func newSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}

func (s *space) newProvider() *identity.Provider {
	public, private, err := ed25519.GenerateKey(nil)
	must(s.t, err)
	s.idp, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: "k1"}}, nil)
	must(s.t, err)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k1", Algorithm: "EdDSA", Use: "sig"}}})
	must(s.t, err)
	provider, err := identity.NewProvider(identity.ProviderConfig{Issuer: testIssuer, Audience: testSpace, JWKS: set})
	must(s.t, err)
	return provider
}

// proof is the body of a person's exchange.
func (s *space) proof(subject, actor string) string {
	s.t.Helper()
	now := time.Now()
	token, err := jwt.Signed(s.idp).Claims(jwt.Claims{Issuer: testIssuer, Subject: subject, Audience: jwt.Audience{testSpace},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(time.Hour))}).Serialize()
	must(s.t, err)
	return `{"id_token":"` + token + `","actor":"` + actor + `"}`
}

// ask sends a request with the capability and returns status and body. An error is
// a connection that could not be had, or broke.
func (s *space) ask(method, url, body string) (int, string, error) {
	request, err := http.NewRequestWithContext(context.WithoutCancel(s.t.Context()), method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+s.capability.Reveal())
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), err
}

func (s *space) grant(subject, actor string) {
	s.t.Helper()
	status, body, err := s.ask("POST", s.address.URL()+"/v1/grants", `{"sub":"`+subject+`","actor":"`+actor+`","publish":["demo.>"]}`)
	if status != http.StatusCreated || err != nil {
		s.t.Fatalf("grant: %d %s, %v", status, body, err)
	}
}

// happens waits for an event of a child that the predicate wants.
func happens(t *testing.T, events *supervisor.Subscription, want func(supervisor.Event) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		event, err := events.Next(ctx)
		if err != nil {
			t.Fatalf("the event did not come: %v", err)
		}
		if want(event) {
			return
		}
	}
}

// opened waits for a generation of a child to be open.
func opened(path string, generation uint64) func(supervisor.Event) bool {
	return func(e supervisor.Event) bool {
		o, is := e.(supervisor.Opened)
		return is && o.Path == path && o.Generation == generation
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
