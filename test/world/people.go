package world

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Grant is what a grant's writer is answered.
type Grant struct {
	Owner      string `json:"owner"`
	Actor      string `json:"actor"`
	UID        string `json:"uid"`
	Revision   uint64 `json:"revision"`
	ActorToken string `json:"actor_token"`
}

// Person is somebody with a grant and a bearer.
type Person struct {
	w     *World
	Sub   string
	Grant Grant
	Token string
}

// Name is what the inbox prefix is made from.
func (p Person) Name() string { return p.Grant.Owner + "-" + p.Grant.Actor }

// Path is the person's place under /v1/grants.
func (p Person) Path() string { return "/v1/grants/" + p.Grant.Owner + "/" + p.Grant.Actor }

// Call asks the loopback face and decodes the answer into into, unless that is
// nil. It returns the status.
func (w *World) Call(method, path string, body, into any) int {
	w.Helper()
	capability, err := os.ReadFile(w.Space.CapabilityFile())
	w.must(err)
	status, answer := w.request(method, w.Space.URL()+path, string(capability), body)
	if into != nil && status != 0 {
		if err := json.Unmarshal(answer, into); err != nil {
			w.Fatalf("%s %s: %d %s: %v", method, path, status, answer, err)
		}
	}
	return status
}

func (w *World) request(method, url, capability string, body any) (int, []byte) {
	w.Helper()
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		w.must(err)
		content = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(w.Context(), method, url, content)
	w.must(err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if capability != "" {
		r.Header.Set("Authorization", "Bearer "+capability)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil // nobody is there now
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	w.must(err)
	return answer.StatusCode, raw
}

// IDToken has the provider vouch for sub.
func (w *World) IDToken(sub string) string {
	w.Helper()
	var answer struct {
		IDToken string `json:"id_token"`
	}
	status, raw := w.request("POST", w.Provider.Issuer()+"/dev/token", "", map[string]string{"sub": sub})
	if status != http.StatusOK || json.Unmarshal(raw, &answer) != nil {
		w.Fatalf("dev token: %d %s", status, raw)
	}
	return answer.IDToken
}

// Grant grants sub's actor to publish and subscribe below the subjects.
func (w *World) Grant(sub, actor string, subjects ...string) Grant {
	w.Helper()
	var g Grant
	status := w.Call("POST", "/v1/grants", map[string]any{
		"sub": sub, "actor": actor, "scope": []string{}, "publish": subjects, "subscribe": subjects, "serve": false,
	}, &g)
	if status != http.StatusCreated {
		w.Fatalf("grant %s %s: %d", sub, actor, status)
	}
	return g
}

// Exchange turns a proof of sub into a bearer.
func (w *World) Exchange(sub, actor string) (token string, status int) {
	w.Helper()
	var answer struct {
		Token string `json:"token"`
	}
	status = w.Call("POST", "/exchange", map[string]any{"id_token": w.IDToken(sub), "actor": actor}, &answer)
	return answer.Token, status
}

// Person grants sub what it asks and logs it in.
func (w *World) Person(sub, actor string, subjects ...string) Person {
	w.Helper()
	p := Person{w: w, Sub: sub, Grant: w.Grant(sub, actor, subjects...)}
	var status int
	if p.Token, status = w.Exchange(sub, actor); status != http.StatusOK {
		w.Fatalf("exchange %s %s: %d", sub, actor, status)
	}
	return p
}

// With is somebody who has this grant and this bearer.
func (w *World) With(g Grant, token string) Person { return Person{w: w, Grant: g, Token: token} }

// Dial connects as the person, with a patience that suits a slow machine.
func (p Person) Dial(more ...nats.Option) (*nats.Conn, error) {
	return p.DialPlainly(append([]nats.Option{nats.Timeout(5 * time.Second)}, more...)...)
}

// DialBy connects as the person, trying again with little patience until the
// deadline: a try that met a responder as it died is never answered.
func (p Person) DialBy(deadline time.Time) (nc *nats.Conn, err error) {
	for again := true; again; again = time.Now().Before(deadline) {
		if nc, err = p.Dial(nats.Timeout(500 * time.Millisecond)); err == nil {
			return nc, nil
		}
	}
	return nil, err
}

// DialPlainly connects as the person with what a client needs and the library's
// defaults otherwise.
func (p Person) DialPlainly(more ...nats.Option) (*nats.Conn, error) {
	return nats.Connect(p.w.Config.NATSURL, append([]nats.Option{
		nats.UserCredentials(p.w.Config.SentinelCreds), nats.Token(p.Token),
		nats.CustomInboxPrefix("_INBOX_" + p.Name()),
	}, more...)...)
}

// Connect connects as the person until the test ends.
func (p Person) Connect(more ...nats.Option) *nats.Conn {
	p.w.Helper()
	nc, err := p.Dial(more...)
	p.w.must(err)
	p.w.Cleanup(nc.Close)
	return nc
}

// Refused reports whether err is a server's no to who connects, as far as a client
// is told.
func Refused(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "authorization violation")
}
