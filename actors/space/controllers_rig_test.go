package space_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/test/world"
)

const (
	runner = "runner"
	run    = "rrrrrrrrrrrrrrrrrrrrrrrrrr"
)

var kindsOfKeys = []string{"supervisor", "executor", "server", "recorder", "ledger"}

// controlled is a space with a public face, somebody who may run a controller, and his
// instance.
type controlled struct {
	*world.World
	owner string
}

// newControlled opens the space of w, and grants. Controllers' credentials are short
// where short says so.
func newControlled(w *world.World) *controlled {
	w.Helper()
	w.Start()
	c := &controlled{World: w}
	var made world.Grant
	if status := w.Call("POST", "/v1/grants", map[string]any{"sub": "boss", "actor": "cli", "scope": []string{"supervise"}}, &made); status != http.StatusCreated {
		w.Fatalf("grant: %d", status)
	}
	c.owner = made.Owner
	return c
}

func publicly(c *space.Config) { c.Public = &space.PublicConfig{Listen: "127.0.0.1:0"} }

// register makes a new process the one of the instance, and tells its epoch.
func (c *controlled) register() uint64 {
	c.Helper()
	done, err := c.Space.RegisterHostInstance(c.Context(), runner, run, space.ControllerPrincipal(c.owner, run))
	if err != nil {
		c.Fatal(err)
	}
	return done.Instance.Epoch
}

// program is a controller's: it has a proof of who runs it, keys that it made itself,
// and what it was given.
type program struct {
	*controlled
	epoch   uint64
	pairs   map[string]nkeys.KeyPair
	users   map[string]string
	expires map[string]time.Time
	receipt string
	asked   int

	mu   *sync.Mutex // connections ask for their JWTs when they come back
	jwts map[string]string
}

func (c *controlled) program(epoch uint64) *program {
	p := &program{controlled: c, epoch: epoch, pairs: map[string]nkeys.KeyPair{}, users: map[string]string{}, expires: map[string]time.Time{}, mu: &sync.Mutex{}, jwts: map[string]string{}}
	for _, kind := range kindsOfKeys {
		p.make(kind)
	}
	return p
}

func (p *program) make(kind string) string {
	p.Helper()
	pair, err := nkeys.CreateUser()
	if err == nil {
		p.pairs[kind] = pair
		p.users[kind], err = pair.PublicKey()
	}
	if err != nil {
		p.Fatal(err)
	}
	return p.users[kind]
}

// doorAnswer is what a door says.
type doorAnswer struct {
	Epoch       uint64
	Credentials map[string]struct {
		User, JWT string
		ExpiresAt time.Time `json:"expires_at"`
	}
	Receipt   string
	IssuedAt  time.Time `json:"issued_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Error     struct{ Code, Reason string }
}

// request is what a door takes, under an id of its own.
func (p *program) request(door string) map[string]any {
	p.asked++
	keys := map[string]string{}
	for _, kind := range kindsOfKeys {
		keys[kind] = p.users[kind]
	}
	body := map[string]any{"v": 1, "space": "main", "actor": "cli", "endpoint": runner, "instance": run, "epoch": p.epoch,
		"request_id": fmt.Sprintf("%s-%020d", door, p.asked), "keys": keys}
	switch door {
	case "activate":
		body["commands"] = []string{"start", "stop"}
	case "renew", "session", "retire":
		body["receipt"] = p.receipt
	}
	switch door {
	case "session":
		body["session"] = map[string]any{"id": "s1", "user": p.make("session"), "expires_at": time.Now().Add(time.Hour).Format(time.RFC3339)}
	case "retire":
		uid := strings.Repeat("u", 26)
		body["target"] = map[string]any{"owner": p.owner, "actor": "worker", "uid": uid, "op_id": ledger.OperationOf(uid), "user": p.make("requester")}
	}
	return body
}

// ask asks at a door of the public face.
func (p *program) ask(door, proof string, body map[string]any) (int, doorAnswer) {
	p.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		p.Fatal(err)
	}
	r, err := http.NewRequestWithContext(p.Context(), "POST", p.Space.PublicURL()+"/v1/controllers/"+door, bytes.NewReader(raw))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+proof)
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	var answer doorAnswer
	if err != nil || json.Unmarshal(text, &answer) != nil {
		p.Fatalf("%s: %d %s, %v", door, reply.StatusCode, text, err)
	}
	return reply.StatusCode, answer
}

// asks insists, and keeps what it is given.
func (p *program) asks(door, proof string, body map[string]any) doorAnswer {
	p.Helper()
	status, answer := p.ask(door, proof, body)
	if status != http.StatusOK {
		p.Fatalf("%s: %d %+v", door, status, answer.Error)
	}
	for kind, c := range answer.Credentials {
		if c.User != p.users[kind] {
			p.Errorf("%s gives %s to another user", door, kind)
		}
		p.expires[kind] = c.ExpiresAt
		p.hold(kind, c.JWT)
	}
	if answer.Receipt != "" {
		p.receipt = answer.Receipt
	}
	return answer
}

// hold makes a JWT the one that a user connects with.
func (p *program) hold(kind, token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jwts[kind] = token
}

func (p *program) held(kind string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.jwts[kind]
}

// dial connects as one of the program's users, with whatever credential it has last.
func (p *program) dial(kind string, more ...nats.Option) (*nats.Conn, error) {
	return nats.Connect(p.Config.NATSURL, append([]nats.Option{nats.Timeout(5 * time.Second),
		nats.UserJWT(func() (string, error) { return p.held(kind), nil }, p.pairs[kind].Sign),
		nats.CustomInboxPrefix("_INBOX_" + p.users[kind]), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}, more...)...)
}

func (p *program) connect(kind string, more ...nats.Option) *nats.Conn {
	p.Helper()
	nc, err := p.dial(kind, more...)
	if err != nil {
		p.Fatalf("connect as %s: %v", kind, err)
	}
	p.Cleanup(nc.Close)
	return nc
}

func (p *program) subject(rest string) string {
	return broker.ControllerSubject("main", runner, run, p.epoch, rest)
}
