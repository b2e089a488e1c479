package face

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

func TestGrantsOverHTTP(t *testing.T) {
	w := newWorld(t)
	a := w.do("POST", w.url+"/v1/grants", `{"sub":"user-1","actor":"laptop","scope":[],"publish":["demo.>"],"subscribe":["demo.>"],"serve":false,"role":"narrow","label":"Anna's"}`)
	owner, uid := a.text("owner"), a.text("uid")
	path := w.url + "/v1/grants/" + owner + "/laptop"
	if a.status != 201 || a.text("actor") != "laptop" || uid == "" || a.fields["revision"] != 1.0 || a.header.Get("Location") != "/v1/grants/"+owner+"/laptop" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if _, has := a.fields["actor_token"]; has {
		t.Fatal("a person got a secret")
	}
	a = w.do("GET", path, "")
	if a.text("role") != "narrow" || a.text("label") != "Anna's" || a.text("state") != "live" || a.text("kind") != "interactive" || strings.Contains(a.body, "null") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	a = w.do("PUT", path, `{"revision":1,"publish":["demo.a"]}`)
	if a.status != 200 || a.text("uid") != uid || a.fields["revision"] != 2.0 {
		t.Fatalf("edit: %d %s", a.status, a.body)
	}
	a = w.do("GET", path, "")
	if got := a.fields["subscribe"].([]any); len(got) != 0 || a.text("label") != "" {
		t.Fatalf("what was not sent is still granted: %s", a.body)
	}
	if a = w.do("PUT", path, `{"revision":1}`); a.status != 409 {
		t.Fatalf("edit of an old revision: %d", a.status)
	}
	if a = w.do("DELETE", path, ""); a.status != 200 || a.text("uid") != uid || a.text("owner") != owner || a.text("actor") != "laptop" || a.fields["revision"] == nil {
		t.Fatalf("revoke: %d %s", a.status, a.body)
	}
	a = w.do("GET", w.url+"/v1/grants", "")
	if grants := a.fields["grants"].([]any); len(grants) != 1 || grants[0].(map[string]any)["state"] != "revoked" {
		t.Fatalf("list: %s", a.body)
	}
}

// A role that is no profile would only shut its principal out, so it is refused
// before anything is written.
func TestAnUnknownRoleIsRefused(t *testing.T) {
	w := newWorld(t)
	owner := w.grant("user-1", "laptop")
	path := w.url + "/v1/grants/" + owner + "/laptop"
	for _, a := range []answer{
		w.do("POST", w.url+"/v1/grants", `{"sub":"user-2","actor":"laptop","role":"wide"}`),
		w.do("PUT", path, `{"revision":1,"role":"wide"}`),
	} {
		if a.status != 400 || !strings.Contains(a.text("error", "message"), `role "wide" is no permission profile; there is default, narrow`) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	// Revision 1 still stands, and nobody else does.
	if list := w.do("GET", w.url+"/v1/grants", ""); strings.Contains(list.body, "wide") || len(list.fields["grants"].([]any)) != 1 {
		t.Errorf("listed %s", list.body)
	}
	for revision, role := range []string{"default", "narrow", ""} {
		if a := w.do("PUT", path, fmt.Sprintf(`{"revision":%d,"role":%q}`, revision+1, role)); a.status != 200 {
			t.Errorf("role %q: %d %s", role, a.status, a.body)
		}
	}
}

// The next command of a refusal names whom it is about, once that is known, and
// patterns are shown as they were written.
func TestRefusalsAndListsReadAsTheyAreMeant(t *testing.T) {
	w := newWorld(t)
	owner := w.grant("user-1", "laptop")
	stands := w.do("POST", w.url+"/v1/grants", `{"sub":"user-1","actor":"laptop"}`)
	if next := stands.text("error", "next"); next != "authplane show "+owner+"/laptop" {
		t.Errorf("next %q of %s", next, stands.body)
	}
	absent := w.exchange("user-1", "phone")
	if next := absent.text("error", "next"); next != "authplane grant "+owner+"/phone" {
		t.Errorf("next %q of %s", next, absent.body)
	}
	guessed := w.do("POST", w.url+"/exchange", `{"owner":"`+owner+`","actor":"laptop","actor_token":"guessed"}`)
	if strings.Contains(guessed.body, owner) {
		t.Errorf("whoever proved nothing is told %s", guessed.body)
	}
	if list := w.do("GET", w.url+"/v1/grants", ""); !strings.Contains(list.body, `"demo.>"`) {
		t.Errorf("listed as %s", list.body)
	}
}

// A grant whose row cannot be read hides no other, and is named.
func TestGrantsThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	owner := w.grant("user-1", "laptop")
	w.grant("user-1", "phone")
	row, _, err := w.rows.store.Get(t.Context(), "grant."+owner+".phone")
	must(t, err)
	_, err = w.rows.store.Apply(t.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, []byte("junk"))}})
	must(t, err)
	a := w.do("GET", w.url+"/v1/grants", "")
	if grants, _ := a.fields["grants"].([]any); a.status != 200 || len(grants) != 1 || grants[0].(map[string]any)["actor"] != "laptop" {
		t.Errorf("list: %d %s", a.status, a.body)
	}
	if keys, _ := a.fields["unreadable"].([]any); len(keys) != 1 || keys[0] != row.Key {
		t.Errorf("unreadable: %s", a.body)
	}
}

func TestRotatingASecret(t *testing.T) {
	w := newWorld(t)
	owner, secret := w.machine("user-1", "robot")
	path := w.url + "/v1/grants/" + owner + "/robot"
	if a := w.do("PUT", path, `{"revision":2,"rotate_secret":true}`); a.status != 409 {
		t.Fatalf("rotate at another revision: %d", a.status)
	}
	a := w.do("PUT", path, `{"revision":1,"rotate_secret":true}`)
	fresh := a.text("actor_token")
	if a.status != 200 || fresh == "" || fresh == secret {
		t.Fatalf("rotate: %d %s", a.status, a.body)
	}
	a = w.do("GET", path, "")
	if got := a.fields["publish"].([]any); len(got) != 1 || strings.Contains(a.body, "hash") || strings.Contains(a.body, fresh) {
		t.Fatalf("after the rotation: %s", a.body)
	}
	for token, want := range map[string]int{secret: 401, fresh: 200} {
		if a := w.do("POST", w.url+"/exchange", `{"owner":"`+owner+`","actor":"robot","actor_token":"`+token+`"}`); a.status != want {
			t.Errorf("got %d, want %d", a.status, want)
		}
	}
	if a := w.do("PUT", w.url+"/v1/grants/"+owner+"/boss_robot", `{"revision":1,"rotate_secret":true}`); a.status < 400 || a.status > 499 {
		t.Errorf("a person's secret was rotated: %d %s", a.status, a.body)
	}
}

func form(values ...string) string {
	f := url.Values{"grant_type": {grantTypeExchange}, "subject_token_type": {tokenTypeID}, "actor": {"laptop"}, "audience": {testSpace}}
	for i := 0; i < len(values); i += 2 {
		f.Del(values[i])
		if values[i+1] != "" {
			f.Set(values[i], values[i+1])
		}
	}
	return f.Encode()
}

func TestTokenExchange(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "laptop")
	token := w.idToken("user-1", time.Hour)
	asForm, bare := header("Content-Type", mediaForm), func(r *http.Request) { r.Header.Del("Authorization") }
	for _, c := range []struct {
		name, body string
		status     int
		code       string
	}{
		{"an exchange", form("subject_token", token), 200, ""},
		{"of a jwt", form("subject_token", token, "subject_token_type", tokenTypeJWT), 200, ""},
		{"without an audience", form("subject_token", token, "audience", ""), 200, ""},
		{"with a parameter of another's", form("subject_token", token, "client_id", "x"), 200, ""},
		{"no grant type", form("subject_token", token, "grant_type", ""), 400, "invalid_request"},
		{"another grant type", form("subject_token", token, "grant_type", "password"), 400, "unsupported_grant_type"},
		{"another subject type", form("subject_token", token, "subject_token_type", "urn:ietf:params:oauth:token-type:saml2"), 400, "invalid_request"},
		{"another audience", form("subject_token", token, "audience", "other"), 400, "invalid_target"},
		{"a resource", form("subject_token", token, "resource", "https://x"), 400, "invalid_target"},
		{"a scope", form("subject_token", token, "scope", "read"), 400, "invalid_scope"},
		{"delegation", form("subject_token", token, "actor_token", "x"), 400, "invalid_request"},
		{"another token", form("subject_token", token, "requested_token_type", "urn:ietf:params:oauth:token-type:refresh_token"), 400, "invalid_request"},
		{"no subject token", form(), 400, "invalid_request"},
		{"no actor", form("subject_token", token, "actor", ""), 400, "invalid_request"},
		{"a bad actor", form("subject_token", token, "actor", "a.b"), 400, "invalid_request"},
		{"twice", form("subject_token", token) + "&actor=x", 400, "invalid_request"},
		{"a bad proof", form("subject_token", "x.y.z"), 400, "invalid_request"},
		{"not granted", form("subject_token", token, "actor", "phone"), 400, "invalid_request"},
	} {
		for face, url := range map[string]string{"loopback": w.url, "public": w.publicURL} {
			options := []option{asForm}
			if face == "public" {
				options = append(options, bare)
			}
			a := w.do("POST", url+"/oauth2/token", c.body, options...)
			if a.status != c.status || a.text("error") != c.code || c.code != "" && a.text("error_description") == "" {
				t.Errorf("%s, %s: got %d %s", face, c.name, a.status, a.body)
			}
			if c.status != 200 {
				continue
			}
			bearer, err := w.keyring.Verify(a.text("access_token"), time.Now())
			if err != nil || bearer.Principal.Actor != "laptop" || a.text("token_type") != "Bearer" || a.text("issued_token_type") != tokenTypeAccess ||
				a.fields["expires_in"] != 900.0 || a.header.Get("Cache-Control") != "no-store" || a.header.Get("Pragma") != "no-cache" {
				t.Errorf("%s, %s: %s, %v", face, c.name, a.body, err)
			}
		}
	}
	if a := w.do("POST", w.url+"/oauth2/token", form("subject_token", token), asForm, bare); a.status != 401 || a.text("error") != "invalid_client" {
		t.Errorf("without the capability: %d %s", a.status, a.body)
	}
	if a := w.do("POST", w.url+"/oauth2/token", `{}`); a.status != 415 || a.text("error") != "invalid_request" {
		t.Errorf("as JSON: %d %s", a.status, a.body)
	}
	w.rows.inFrontOf(&w.rows.beforeRead, func(context.Context) error { return messages.BrokerAway })
	if a := w.do("POST", w.url+"/oauth2/token", form("subject_token", token), asForm); a.status != 503 || a.text("error") != "temporarily_unavailable" || a.header.Get("Retry-After") == "" {
		t.Errorf("without the broker: %d %s", a.status, a.body)
	}
}

func TestThePublicFace(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "laptop")
	bare := func(r *http.Request) { r.Header.Del("Authorization") }
	if a := w.do("POST", w.publicURL+"/exchange", `{"id_token":"`+w.idToken("user-1", time.Hour)+`","actor":"laptop"}`, bare); a.status != 200 {
		t.Fatalf("an exchange: %d %s", a.status, a.body)
	}
	a := w.do("GET", w.publicURL+"/.well-known/cotal-mesh", "", bare)
	for field, want := range map[string]string{"space": testSpace, "nats_url": "nats://127.0.0.1:4222", "sentinel_creds": "sentinel.creds",
		"exchange_url": "https://auth.example.test/exchange", "idp_issuer": testIssuer} {
		if a.text(field) != want {
			t.Errorf("%s is %q, want %q", field, a.text(field), want)
		}
	}
	a = w.do("GET", w.publicURL+"/.well-known/oauth-authorization-server", "", bare)
	if a.text("issuer") != "https://auth.example.test" || a.text("token_endpoint") != "https://auth.example.test/oauth2/token" ||
		a.text("jwks_uri") != "https://auth.example.test/jwks" || a.fields["response_types_supported"] == nil {
		t.Errorf("metadata: %d %s", a.status, a.body)
	}
	if a = w.do("GET", w.publicURL+"/jwks", "", bare); a.status != 200 || !strings.Contains(a.header.Get("Cache-Control"), "max-age=300") || a.body != string(w.keyring.JWKS()) {
		t.Errorf("keys: %d %v", a.status, a.header)
	}
	if a = w.do("GET", w.publicURL+"/livez", "", bare); a.status != 200 {
		t.Errorf("livez: %d", a.status)
	}
	// The capability opens nothing here either.
	for _, path := range []string{"/", "/v1/status", "/v1/grants", "/v1/tree", "/v1/events", "/v1/debug/kill", "/metrics", "/readyz", "/startupz"} {
		for _, method := range []string{"GET", "POST"} {
			if a := w.do(method, w.publicURL+path, `{}`); a.status != 404 {
				t.Errorf("%s %s: got %d", method, path, a.status)
			}
		}
	}
}

func TestProbesFollowTheState(t *testing.T) {
	w := newWorld(t)
	for state, want := range map[messages.SpaceState][3]int{
		messages.SpaceStarting: {200, 503, 503}, messages.SpaceReady: {200, 200, 200}, messages.SpaceUnavailable: {200, 503, 200}, messages.SpaceDraining: {200, 503, 200},
	} {
		w.control.become(state)
		for i, path := range []string{"/livez", "/readyz", "/startupz"} {
			a := w.do("GET", w.url+path, "", func(r *http.Request) { r.Header.Del("Authorization") })
			if a.status != want[i] || strings.Contains(a.body, "operator") {
				t.Errorf("%s while %s: got %d %s", path, state, a.status, a.body)
			}
		}
	}
	if a := w.do("GET", w.url+"/v1/status", ""); a.text("space") != testSpace || a.text("cause") == "" || a.text("state") != "draining" && a.text("state") == "" {
		t.Errorf("status: %s", a.body)
	}
}

func TestViews(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]string{
		"/v1/tree":        `{"actors":[{"path":"plane/writer","state":"open","generation":3,"restarts":2,"label":"cotal:auth-mint:demo","last_error":""}]}`,
		"/v1/connections": `{"connections":[]}`,
		"/v1/grants":      `{"grants":[],"unreadable":[]}`,
		"/v1/denials":     `{"denials":[{"id":"d1","at":"0001-01-01T00:00:00Z","kind":"denied","code":"permission-denied","reason":"grant.absent","principal":"","remedy":""}]}`,
	} {
		if a := w.do("GET", w.url+path, ""); a.status != 200 || strings.TrimSpace(a.body) != want {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	a := w.do("POST", w.url+"/v1/debug/kill", `{"actor":"plane/writer","how":"stop"}`)
	if a.status != 202 || strings.TrimSpace(a.body) != `{"generation":3,"path":"plane/writer"}` || !slices.Equal(w.control.killed, []string{"plane/writer stop"}) {
		t.Errorf("kill: %d %s", a.status, a.body)
	}
}

func TestEventsEndWhenTheFaceDrains(t *testing.T) {
	w := newWorld(t)
	request, err := http.NewRequestWithContext(t.Context(), "GET", w.url+"/v1/events", nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+w.capability.Reveal())
	response, err := w.client.Do(request)
	must(t, err)
	defer response.Body.Close()
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %d %v", response.StatusCode, response.Header)
	}
	lines := bufio.NewScanner(response.Body)
	w.control.events <- messages.Event{Kind: "died", Path: "plane/writer", Text: "two\nlines"}
	var event messages.Event
	for lines.Scan() {
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
			must(t, json.Unmarshal([]byte(data), &event))
			break
		}
	}
	if event.Kind != "died" || event.Text != "two\nlines" {
		t.Fatalf("got %+v", event)
	}
	must(t, w.loopback.Drain(t.Context()))
	for lines.Scan() {
		if lines.Text() != "" {
			t.Errorf("after the drain: %q", lines.Text())
		}
	}
	must(t, lines.Err())
}

func TestEventStreamsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.loopback.streams = make(chan struct{}) // none may be open
	if a := w.do("GET", w.url+"/v1/events", ""); a.status != 503 {
		t.Fatalf("got %d", a.status)
	}
}

// Where nobody can drop a connection, a revocation says by when it has ended; where
// that can be done it does not, nor for a grant that nobody used.
func TestARevocationSaysByWhenConnectionsEnd(t *testing.T) {
	for within, says := range map[time.Duration]bool{0: false, 905 * time.Second: true} {
		w := newWorld(t)
		w.loopback.config.EndsWithin = within
		owner := strings.TrimSpace(w.grant("user-1", "laptop"))
		w.grant("user-1", "phone")
		w.exchange("user-1", "laptop")
		before := time.Now()
		a := w.do("DELETE", w.url+"/v1/grants/"+owner+"/laptop", "")
		if a.status != 200 || a.text("op_id") == "" {
			t.Fatalf("got %d %s", a.status, a.body)
		}
		if _, said := a.fields["ends_by"]; said != says {
			t.Errorf("within %v: %s", within, a.body)
		}
		if at, err := time.Parse(time.RFC3339, a.text("ends_by")); says && (err != nil || at.Before(before.Add(within).Truncate(time.Second)) || at.After(time.Now().Add(within))) {
			t.Errorf("it ends by %v, %v", at, err)
		}
		if a := w.do("DELETE", w.url+"/v1/grants/"+owner+"/phone", ""); a.status != 200 || a.text("ends_by") != "" {
			t.Errorf("never used: %d %s", a.status, a.body)
		}
	}
}
