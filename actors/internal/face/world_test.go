package face

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"crypto/ed25519"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

const (
	testSpace  = "demo"
	testIssuer = "https://login.example.test"
)

// rows is an Authority over the ledger in memory. A test may put something of its
// own in front of one of its calls.
type rows struct {
	store  *ledger.Store
	reader *ledger.Reader
	writer *ledger.Writer

	mu          sync.Mutex
	beforeRead  func(context.Context) error
	beforeEnrol func(context.Context) error
	reads       int
	// standing are heads that a test says still stand, by whom they are of.
	standing map[messages.Principal]messages.Head
}

func newRows() *rows {
	store := ledger.NewStore(memory.New(), ledger.DefaultPatience())
	return &rows{store: store, reader: ledger.NewReader(store, nil), writer: ledger.NewWriter(store, ledger.Options{Instance: "test"})}
}

func (r *rows) inFrontOf(hook *func(context.Context) error, f func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*hook = f
}

func (r *rows) run(ctx context.Context, hook *func(context.Context) error) error {
	r.mu.Lock()
	f := *hook
	r.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(ctx)
}

func (r *rows) Read(ctx context.Context, m messages.ReadAuthority) (messages.Authority, error) {
	r.mu.Lock()
	r.reads++
	r.mu.Unlock()
	if err := r.run(ctx, &r.beforeRead); err != nil {
		return messages.Authority{}, err
	}
	found, err := r.reader.Authority(ctx, m)
	if head, stands := r.stands(m.Principal); stands {
		found.HasHead, found.Head = true, head
	}
	return found, err
}

func (r *rows) stands(p messages.Principal) (messages.Head, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	head, stands := r.standing[p]
	return head, stands
}

// stand says that a principal's incarnation has not ended, until it is told to.
func (r *rows) stand(p messages.Principal, uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.standing == nil {
		r.standing = map[messages.Principal]messages.Head{}
	}
	r.standing[p] = messages.Head{Principal: p, UID: uid, State: messages.HeadRetiring}
}

// end writes what a retirement leaves of a head.
func (r *rows) end(p messages.Principal) error {
	row, found, err := r.store.Get(context.Background(), ledger.HeadKey(p))
	if err != nil || !found {
		return err
	}
	head, err := ledger.DecodeHead(row)
	if err != nil || head.State == messages.HeadRetired {
		return err
	}
	head.State, head.Operation, head.Root = messages.HeadRetired, messages.OperationRef{}, messages.Root{}
	value, err := ledger.EncodeHead(head)
	if err == nil {
		_, err = r.store.Apply(context.Background(), ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, value)}})
	}
	return err
}

func (r *rows) fall(p messages.Principal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.standing, p)
}

func (r *rows) Grants(ctx context.Context) (messages.Grants, error) {
	return r.reader.Grants(ctx)
}

func (r *rows) PutGrant(ctx context.Context, m messages.PutGrant) (messages.GrantWritten, error) {
	if _, stands := r.stands(m.Principal); stands {
		return messages.GrantWritten{}, messages.IncarnationStanding
	}
	return r.writer.PutGrant(ctx, m)
}

func (r *rows) EditGrant(ctx context.Context, m messages.EditGrant) (messages.GrantWritten, error) {
	return r.writer.EditGrant(ctx, m)
}

func (r *rows) RevokeGrant(ctx context.Context, m messages.RevokeGrant) (messages.GrantWritten, error) {
	return r.writer.RevokeGrant(ctx, m)
}

func (r *rows) Enrol(ctx context.Context, m messages.Enrol) (messages.Enrolled, error) {
	if err := r.run(ctx, &r.beforeEnrol); err != nil {
		return messages.Enrolled{}, err
	}
	return r.writer.Enrol(ctx, m)
}

// written counts the rows of a kind that stand.
func (r *rows) written(t *testing.T, filter string) int {
	t.Helper()
	keys, err := r.store.List(t.Context(), filter)
	if err != nil {
		t.Fatal(err)
	}
	return len(keys)
}

// control shows fixed things.
type control struct {
	mu     sync.Mutex
	state  messages.SpaceState
	events chan messages.Event // handed to whoever follows
	killed []string
}

func (c *control) Status() messages.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return messages.Status{Space: testSpace, State: c.state, Cause: "cause for the operator"}
}

func (c *control) become(s messages.SpaceState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = s
}

func (c *control) Tree() []messages.Actor {
	return []messages.Actor{{Path: "plane/writer", State: "open", Generation: 3, Restarts: 2, Label: "cotal:auth-mint:demo"}}
}

func (c *control) Connections() []messages.Connection { return nil }

func (c *control) Denials(context.Context) ([]messages.Denial, error) {
	return []messages.Denial{{ID: "d1", Kind: messages.Denied, Code: messages.PermissionDenied, Reason: "grant.absent"}}, nil
}

func (c *control) Events(ctx context.Context) <-chan messages.Event {
	out := make(chan messages.Event)
	go func() { // ends with ctx
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case event := <-c.events:
				out <- event
			}
		}
	}()
	return out
}

func (c *control) Kill(_ context.Context, path, how string) (string, uint64, error) {
	switch {
	case path != "plane/writer":
		return "", 0, messages.NoSuchActor
	case how == "disconnect":
		return "", 0, messages.KillInapplicable
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = append(c.killed, path+" "+how)
	return path, 3, nil
}

// world is both faces over real HTTP.
type world struct {
	gates      *gates
	doors      *doors
	t          *testing.T
	rows       *rows
	control    *control
	desk       *desk
	roll       *roll
	keyring    *identity.Keyring
	capability messages.Secret
	loopback   *Face
	public     *Face
	url        string
	publicURL  string
	idp        jose.Signer
	log        *bytes.Buffer
	logMu      sync.Mutex
	client     *http.Client
}

// Write lets the world be its own log.
func (w *world) Write(p []byte) (int, error) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.log.Write(p)
}

func (w *world) logged() string {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.log.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, rows: newRows(), gates: newGates(), doors: &doors{}, roll: &roll{}, control: &control{state: messages.SpaceReady, events: make(chan messages.Event, 8)},
		capability: identity.NewCapability(), log: &bytes.Buffer{}}
	w.desk = newDesk(w.rows)
	stored, err := identity.GenerateKeyring(testSpace, time.Now())
	must(t, err)
	w.keyring, err = identity.OpenKeyring(testSpace, stored)
	must(t, err)
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	must(t, err)
	bridge := &Bridge{Issuer: testIssuer, Provider: w.newProvider(), OwnerSecret: identity.NewOwnerSecret(), Authority: w.rows, Signer: w.keyring}
	c := Config{Space: testSpace, Authority: w.rows, Operations: w.desk, Bridge: bridge, Keys: w.keyring, Metrics: metrics, Roles: []string{"narrow"},
		Logger: slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	w.loopback = Loopback(c, LoopbackConfig{Control: w.control, Instances: w.gates, Enrolments: w.roll, Controllers: w.doors, Capability: w.capability, FaultInjection: true,
		MetricsPage: promhttp.HandlerFor(registry, promhttp.HandlerOpts{})})
	w.public = Public(c, PublicConfig{URL: func() string { return "https://auth.example.test" }, NATSURL: "nats://127.0.0.1:4222", Sentinel: "sentinel.creds", ProviderIssuer: testIssuer,
		Controllers: w.doors, Verifier: w.keyring})
	w.url, w.publicURL = w.listen(w.loopback), w.listen(w.public)
	w.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}
	t.Cleanup(w.client.CloseIdleConnections)
	return w
}

func (w *world) listen(f *Face) string {
	server := httptest.NewServer(f)
	w.t.Cleanup(func() {
		must(w.t, f.Close(context.Background()))
		server.Close()
	})
	return server.URL
}

func (w *world) newProvider() Provider {
	public, private, err := ed25519.GenerateKey(nil)
	must(w.t, err)
	w.idp, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: "k1"}}, nil)
	must(w.t, err)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k1", Algorithm: "EdDSA", Use: "sig"}}})
	must(w.t, err)
	provider, err := identity.NewProvider(identity.ProviderConfig{Issuer: testIssuer, Audience: testSpace, JWKS: set})
	must(w.t, err)
	return provider
}

// idToken is the provider's proof of a subject.
func (w *world) idToken(subject string, life time.Duration) string {
	w.t.Helper()
	now := time.Now()
	token, err := jwt.Signed(w.idp).Claims(jwt.Claims{Issuer: testIssuer, Subject: subject, Audience: jwt.Audience{testSpace},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(life))}).Serialize()
	must(w.t, err)
	return token
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
	fields map[string]any
}

func (a answer) text(path ...string) string {
	var at any = a.fields
	for _, name := range path {
		fields, _ := at.(map[string]any)
		at = fields[name]
	}
	text, _ := at.(string)
	return text
}

func (a answer) reason() string { return a.text("error", "reason") }

// option changes a request before it is sent.
type option func(*http.Request)

func header(name, value string) option { return func(r *http.Request) { r.Header.Set(name, value) } }

func (w *world) do(method, url, body string, options ...option) answer {
	w.t.Helper()
	a, err := w.try(w.t.Context(), method, url, body, options...)
	must(w.t, err)
	return a
}

func (w *world) try(ctx context.Context, method, url, body string, options ...option) (answer, error) {
	var sent io.Reader
	if body != "" {
		sent = strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, sent)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+w.capability.Reveal())
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, change := range options {
		change(request)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	a := answer{status: response.StatusCode, header: response.Header, body: string(raw)}
	_ = json.Unmarshal(raw, &a.fields) // some answers are no JSON
	return a, err
}

// grant grants a subject one actor and returns its owner.
func (w *world) grant(subject, actor string) string {
	w.t.Helper()
	a := w.do("POST", w.url+"/v1/grants", `{"sub":"`+subject+`","actor":"`+actor+`","scope":["read"],"publish":["demo.>"],"subscribe":["demo.>"]}`)
	if a.status != http.StatusCreated {
		w.t.Fatalf("grant: %d %s", a.status, a.body)
	}
	return a.text("owner")
}

// machine grants a machine below a person's actor and returns its owner and secret.
func (w *world) machine(subject, actor string) (string, string) {
	w.t.Helper()
	owner := w.grant(subject, "boss_"+actor)
	a := w.do("POST", w.url+"/v1/grants", `{"owner":"`+owner+`","actor":"`+actor+`","publish":["demo.a"],"kind":"managed","parent":"`+owner+`.boss_`+actor+`"}`)
	if a.status != http.StatusCreated || a.text("actor_token") == "" {
		w.t.Fatalf("grant a machine: %d %s", a.status, a.body)
	}
	return owner, a.text("actor_token")
}

func (w *world) exchange(subject, actor string) answer {
	w.t.Helper()
	return w.do("POST", w.url+"/exchange", `{"id_token":"`+w.idToken(subject, time.Hour)+`","actor":"`+actor+`"}`)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
