package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cotal-ai/authplane/actors/devidp"
	"github.com/cotal-ai/authplane/actors/space"
)

// patience bounds every wait for something that must happen.
const patience = 60 * time.Second

// stage is an open space: a broker in a process of its own, a provider, and the
// service in this process.
type stage struct {
	testing.TB
	made       space.Initialised
	broker     *child
	provider   *devidp.Run
	system     *actor.ActorSystem
	config     space.Config
	space      *space.Handle
	capability string
	metrics    *prometheus.Registry
	http       *http.Client
}

// newStage builds a stage whose space is not open yet.
func newStage(t testing.TB) *stage {
	t.Helper()
	s := &stage{TB: t, metrics: prometheus.NewRegistry(), http: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
	}}}
	t.Cleanup(s.http.CloseIdleConnections)
	dir := t.TempDir()
	ctx := s.context()
	var err error
	s.made, err = space.Init(ctx, space.InitOptions{Dir: dir, Space: "bench", NATSURL: "nats://127.0.0.1:0"})
	must(t, err)
	var broker brokerReady
	s.broker = spawn(t, "broker", dir, &broker)
	provider, err := devidp.New(devidp.Config{ClientID: "bench"})
	must(t, err)
	s.provider, err = provider.Start(ctx)
	must(t, err)
	t.Cleanup(func() { must(t, s.provider.Stop(context.Background())) })
	s.system = newSystem()
	t.Cleanup(s.system.Shutdown)
	s.config = space.Config{
		Space: "bench", NATSURL: broker.URL, StateDir: filepath.Join(dir, "state"),
		SecretsDir: s.made.SecretsDir, SentinelCreds: s.made.SentinelCreds,
		Provider: &space.ProviderConfig{Issuer: provider.Issuer()}, Metrics: s.metrics,
	}
	return s
}

// openStage builds a stage with an open space.
func openStage(t testing.TB) *stage {
	t.Helper()
	s := newStage(t)
	s.open()
	t.Cleanup(s.close)
	return s
}

func (s *stage) open() {
	s.Helper()
	var err error
	s.space, err = space.Start(s.context(), s.system, s.config)
	must(s, err)
	capability, err := os.ReadFile(s.space.CapabilityFile())
	must(s, err)
	s.capability = string(capability)
}

func (s *stage) close() {
	s.Helper()
	s.http.CloseIdleConnections()
	must(s, s.space.Close(s.context()))
	<-s.space.Closed()
}

// context ends when the patience of a test does.
func (s *stage) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s.Cleanup(cancel)
	return ctx
}

func newSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}

// person is somebody with a grant, and a bearer once logged in.
type person struct {
	Owner string `json:"owner"`
	Actor string `json:"actor"`
	proof string
	token string
}

// grant grants somebody, who gets a proof from the provider but has not used it.
func (s *stage) grant(sub string) (person, error) {
	var p person
	status, err := s.call(s.http, "POST", "/v1/grants", map[string]any{
		"sub": sub, "actor": "laptop", "publish": []string{"demo.>"}, "subscribe": []string{"demo.>"},
	}, &p)
	if err != nil || status != http.StatusCreated {
		return p, fmt.Errorf("grant %s: %d %w", sub, status, err)
	}
	proof, err := s.provider.Token(context.Background(), sub)
	p.proof = proof.Reveal()
	return p, err
}

// people grants n, some at a time.
func (s *stage) people(prefix string, n int) []person {
	s.Helper()
	all := make([]person, n)
	must(s, each(n, 16, func(i int) (err error) {
		all[i], err = s.grant(fmt.Sprintf("%s-%d", prefix, i))
		return err
	}))
	return all
}

// logIn exchanges somebody's proof.
func (s *stage) logIn(client *http.Client, p *person) (status int, err error) {
	var answer struct{ Token string }
	status, err = s.call(client, "POST", "/exchange", map[string]string{"id_token": p.proof, "actor": p.Actor}, &answer)
	p.token = answer.Token
	return status, err
}

// loggedIn are n people with bearers.
func (s *stage) loggedIn(prefix string, n int) []person {
	s.Helper()
	all := s.people(prefix, n)
	must(s, each(n, 16, func(i int) error {
		status, err := s.logIn(s.http, &all[i])
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("exchange: %d", status)
		}
		return err
	}))
	return all
}

func (s *stage) revoke(p person) error {
	status, err := s.call(s.http, "DELETE", "/v1/grants/"+p.Owner+"/"+p.Actor, nil, nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("revoke: %d", status)
	}
	return err
}

// connect connects as somebody.
func (s *stage) connect(p person, more ...nats.Option) (*nats.Conn, error) {
	return s.identity(p).connect(s.config.NATSURL, more...)
}

func (s *stage) identity(p person) identity {
	return identity{Creds: s.made.SentinelCreds, Token: p.token, Inbox: "_INBOX_" + p.Owner + "-" + p.Actor}
}

// readyMade is a user whom the broker admits without asking.
func (s *stage) readyMade() identity {
	return identity{Creds: filepath.Join(s.made.OfflineDir, "break-glass-data.creds")}
}

// call asks the loopback face.
func (s *stage) call(client *http.Client, method, path string, body, into any) (int, error) {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		content = bytes.NewReader(raw)
	}
	r, err := http.NewRequest(method, s.space.URL()+path, content)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+s.capability)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(raw, into)
	}
	return answer.StatusCode, err
}

// each does n things, so many at once, and returns one of the errors.
func each(n, atOnce int, do func(i int) error) error {
	todo := make(chan int) // unbuffered: a hand takes what it does next
	failed := make(chan error, atOnce)
	var hands sync.WaitGroup
	for range min(atOnce, n) {
		hands.Go(func() {
			for i := range todo {
				if err := do(i); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range n {
		todo <- i
	}
	close(todo)
	hands.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// together does n things in the same moment.
func together(n int, do func(i int)) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-begin
			do(i)
		})
	}
	close(begin)
	all.Wait()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
