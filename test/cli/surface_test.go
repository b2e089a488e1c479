package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// api is a service as a script sees it that knows no more than the first line.
type api struct {
	*testing.T
	record
	capability string
}

// said is one answer.
type said struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

func (s said) text(name string) string { text, _ := s.body[name].(string); return text }

// list gives the members of a list, each as an object.
func (s said) list(name string) (members []map[string]any) {
	items, _ := s.body[name].([]any)
	for _, item := range items {
		member, _ := item.(map[string]any)
		members = append(members, member)
	}
	return members
}

func fields(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }

// call sends JSON with the capability and no header besides but those given, by pairs.
func (a *api) call(method, path, body string, headers ...string) said {
	a.Helper()
	url := a.URL + path
	if strings.HasPrefix(path, "http") {
		url = path
	}
	request, err := http.NewRequestWithContext(a.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		a.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+a.capability)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return said{} // nobody is there now
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		a.Fatal(err)
	}
	s := said{status: response.StatusCode, header: response.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &s.body) // what is none has no fields
	return s
}

// has insists on a status and on exactly these fields.
func (a *api) has(what string, got said, status int, names ...string) said {
	a.Helper()
	if slices.Sort(names); got.status != status || !slices.Equal(fields(got.body), names) {
		a.Errorf("%s: got %d %s, want %d with %v", what, got.status, got.raw, status, names)
	}
	return got
}

// refuses insists on a status and on a refusal in the form that all have.
func (a *api) refuses(what string, got said, status int) {
	a.Helper()
	a.has(what, got, status, "error")
	refusal, _ := got.body["error"].(map[string]any)
	if !slices.Equal(fields(refusal), []string{"code", "message", "next", "reason", "request_id", "retryable"}) {
		a.Errorf("%s: the refusal is %s", what, got.raw)
	}
	if wait := got.header.Get("Retry-After"); (wait != "") != (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) {
		a.Errorf("%s: %d with Retry-After %q", what, status, wait)
	}
}

// idToken has the development provider vouch for somebody.
func (a *api) idToken(sub string) string {
	a.Helper()
	return a.has("a proof", a.call("POST", a.IDPIssuer+"/dev/token", `{"sub":"`+sub+`"}`), 200, "id_token").text("id_token")
}

func newAPI(t *testing.T, r record) *api {
	t.Helper()
	return &api{T: t, record: r, capability: read(t, r.CapabilityFile)} // as it is: nothing to trim
}

// What others script against, with nothing but the first line and HTTP: every path,
// field and status that they are promised.
func TestSurfaces(t *testing.T) {
	p, r := dev(t, t.TempDir(), "--fault-injection")
	a := newAPI(t, r)
	if info, err := os.Stat(r.CapabilityFile); err != nil || info.Mode().Perm() != 0o600 || len(a.capability) < 32 || strings.TrimSpace(a.capability) != a.capability {
		t.Errorf("the capability file: %v, %v, %d bytes", info.Mode(), err, len(a.capability))
	}
	sub := func(name string, run func(a *api)) {
		t.Run(name, func(t *testing.T) { run(&api{T: t, record: r, capability: a.capability}) })
	}
	sub("grants", grantsSurface)
	sub("exchange and connect", connectSurface)
	sub("views", viewsSurface)
	sub("kills", killsSurface)
	sub("statuses", statusesSurface) // the last one: it spends what may fail
	p.close(syscall.SIGTERM)
}

func grantsSurface(a *api) {
	written := []string{"owner", "actor", "uid", "revision"}
	g := a.has("a grant", a.call("POST", "/v1/grants",
		`{"sub":"user-1","actor":"laptop","scope":[],"publish":["demo.>"],"subscribe":["demo.>"],"serve":false}`), 201, written...)
	owner, uid := g.text("owner"), g.text("uid")
	if g.body["revision"] != 1.0 || g.text("actor") != "laptop" {
		a.Errorf("granted %s", g.raw)
	}
	a.refuses("again", a.call("POST", "/v1/grants", `{"sub":"user-1","actor":"laptop"}`), 409)
	if o := a.has("by owner", a.call("POST", "/v1/grants", `{"owner":"`+owner+`","actor":"phone"}`), 201, written...); o.text("owner") != owner {
		a.Errorf("granted %s", o.raw)
	}
	m := a.has("a machine", a.call("POST", "/v1/grants",
		`{"owner":"`+owner+`","actor":"robot","kind":"managed","parent":"`+owner+`.laptop","publish":["demo.robot"]}`), 201, append(written, "actor_token")...)
	secret := m.text("actor_token")
	path := "/v1/grants/" + owner + "/laptop"
	e := a.has("an edit", a.call("PUT", path, `{"revision":1,"publish":["demo.>"],"subscribe":["demo.>"]}`), 200, written...)
	if e.body["revision"] != 2.0 || e.text("uid") != uid {
		a.Errorf("edited %s", e.raw)
	}
	a.refuses("an edit of the past", a.call("PUT", path, `{"revision":1}`), 409)
	all := a.call("GET", "/v1/grants", "")
	if all.status != 200 || len(all.list("grants")) != 3 || secret == "" || strings.Contains(all.raw, secret) {
		a.Errorf("listed %d %s", all.status, all.raw)
	}
	if got := a.call("GET", "/v1/grants/"+owner+"/robot", ""); got.text("kind") != "managed" || strings.Contains(got.raw, secret) {
		a.Errorf("shown %d %s", got.status, got.raw)
	}
	x := a.has("a machine's exchange", a.call("POST", "/exchange", `{"owner":"`+owner+`","actor":"robot","actor_token":"`+secret+`"}`), 200, "token", "owner", "expires_at")
	if x.text("owner") != owner {
		a.Errorf("exchanged as %s", x.text("owner"))
	}
	gone := a.call("DELETE", "/v1/grants/"+owner+"/phone", "")
	for _, name := range written {
		if gone.status != 200 || gone.body[name] == nil {
			a.Errorf("revoked, without %s: %d %s", name, gone.status, gone.raw)
		}
	}
	a.refuses("a machine of somebody revoked", a.call("POST", "/v1/grants",
		`{"owner":"`+owner+`","actor":"late","kind":"managed","parent":"`+owner+`.phone"}`), 403)
}

func connectSurface(a *api) {
	a.call("POST", "/v1/grants", `{"sub":"user-2","actor":"laptop","publish":["demo.>"],"subscribe":["demo.>"],"serve":true}`)
	proof := a.idToken("user-2")
	began := time.Now()
	x := a.has("an exchange", a.call("POST", "/exchange", `{"id_token":"`+proof+`","actor":"laptop","ttl_seconds":60}`), 200, "token", "owner", "expires_at")
	if ends, err := time.Parse(time.RFC3339, x.text("expires_at")); err != nil || ends.Before(began) || ends.After(time.Now().Add(time.Minute)) {
		a.Errorf("a minute's token ends at %s", x.text("expires_at"))
	}
	prefix := "_INBOX_" + x.text("owner") + "-laptop"
	nc, err := nats.Connect(a.NATSURL, nats.UserCredentials(a.SentinelCreds), nats.Token(x.text("token")), nats.CustomInboxPrefix(prefix))
	if err != nil {
		a.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Subscribe("demo.echo", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		a.Fatal(err)
	}
	if m, err := nc.Request("demo.echo", []byte("hi"), patience); err != nil || string(m.Data) != "hi" {
		a.Errorf("an answer in the own inbox: %v, %v", m, err)
	}
	violations := make(chan error, 4) // more than are caused here
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { violations <- err })
	if _, err := nc.SubscribeSync("_INBOX.x"); err != nil {
		a.Fatal(err)
	}
	select {
	case <-violations:
	case <-time.After(patience):
		a.Error("another inbox is allowed")
	}
	for what, options := range map[string][]nats.Option{
		"without a token":    {nats.UserCredentials(a.SentinelCreds)},
		"without a sentinel": {nats.Token(x.text("token"))},
	} {
		if nc, err := nats.Connect(a.NATSURL, options...); err == nil {
			nc.Close()
			a.Errorf("connected %s", what)
		}
	}
}

func viewsSurface(a *api) {
	status := a.call("GET", "/v1/status", "")
	if status.text("space") != "dev" || status.text("state") != "ready" || status.body["cause"] != "" {
		a.Errorf("status %s", status.raw)
	}
	plane, _ := status.body["plane"].(map[string]any)
	if want := []string{"generation", "held_by_us", "holder", "next", "since", "state", "waiting_for"}; !slices.Equal(fields(plane), want) ||
		plane["state"] != "active" || plane["held_by_us"] != true || plane["generation"] != 1.0 || plane["holder"] == "" {
		a.Errorf("plane %v", plane)
	}
	each := func(path, list string, want ...string) {
		slices.Sort(want)
		got := a.has(path, a.call("GET", path, ""), 200, list).list(list)
		for _, member := range got {
			delete(member, "group") // said of those alone that are places
			if !slices.Equal(fields(member), want) {
				a.Errorf("%s lists %v, want %v", path, member, want)
			}
		}
		if len(got) == 0 {
			a.Errorf("%s lists nothing", path)
		}
	}
	each("/v1/tree", "actors", "path", "state", "generation", "restarts", "label", "last_error")
	each("/v1/connections", "connections", "label", "ended")
	each("/v1/denials", "denials", "id", "at", "kind", "code", "reason", "principal", "remedy")
	for _, denial := range a.call("GET", "/v1/denials", "").list("denials") {
		if denial["kind"] != "denied" || denial["code"] != "unauthenticated" {
			a.Errorf("kept %v", denial)
		}
	}
}

func killsSurface(a *api) {
	kill := func(actor, how string) said {
		return a.call("POST", "/v1/debug/kill", `{"actor":"`+actor+`","how":"`+how+`"}`)
	}
	for _, how := range []string{"panic", "stop", "disconnect"} {
		var killed said
		for late := time.Now().Add(patience); killed.status != 202; killed = kill("plane/writer", how) {
			if time.Now().After(late) {
				a.Fatalf("%s: got %d %s", how, killed.status, killed.raw)
			}
		}
		if a.has(how, killed, 202, "path", "generation"); killed.text("path") != "plane/writer" {
			a.Errorf("killed %s", killed.raw)
		}
		a.refuses("nobody's "+how, kill("plane/nobody", how), 404)
		a.refuses("the root's "+how, kill("dev", how), 409)
		a.refuses("a place's "+how, kill("plane", how), 409)
	}
	a.refuses("a face has no connection", kill("exchange", "disconnect"), 409)
	a.refuses("a way there is not", kill("plane/writer", "poison"), 400)
	a.has("the face", kill("exchange", "panic"), 202, "path", "generation")
	for late := time.Now().Add(patience); ; { // on the address that the first line names
		if got := a.call("GET", "/v1/tree", ""); slices.ContainsFunc(got.list("actors"), func(actor map[string]any) bool {
			return actor["path"] == "exchange" && actor["state"] == "open" && actor["generation"] == 2.0 && actor["restarts"] == 1.0
		}) {
			return
		}
		if time.Now().After(late) {
			a.Fatal("the face does not come back")
		}
	}
}

func statusesSurface(a *api) {
	proof := a.idToken("user-2")
	person := `{"id_token":"` + proof + `","actor":"laptop"}`
	for _, c := range []struct {
		what, method, path, body string
		status                   int
		headers                  []string
	}{
		{"malformed", "POST", "/exchange", `{"id_token":`, 400, nil},
		{"an unknown field", "POST", "/v1/grants", `{"sub":"x","actor":"y","admin":true}`, 400, nil},
		{"a bad proof", "POST", "/exchange", `{"id_token":"x.y.z","actor":"laptop"}`, 401, nil},
		{"no capability", "POST", "/exchange", person, 401, []string{"Authorization", ""}},
		{"another capability", "GET", "/v1/status", "", 401, []string{"Authorization", "Bearer " + strings.Repeat("0", len(a.capability))}},
		{"not granted", "POST", "/exchange", `{"id_token":"` + proof + `","actor":"phone"}`, 403, nil},
		{"from a page", "POST", "/exchange", person, 403, []string{"Origin", "https://page.example"}},
		{"no such path", "GET", "/v1/nothing", "", 404, nil},
		{"no such grant", "DELETE", "/v1/grants/u_aaaaaaaaaaaaaaaaaaaaaaaaaa/x", "", 404, nil},
		{"another method", "DELETE", "/v1/status", "", 405, nil},
		{"live already", "POST", "/v1/grants", `{"sub":"user-2","actor":"laptop"}`, 409, nil},
		{"too large", "POST", "/exchange", strings.Repeat(" ", 64<<10) + person, 413, nil},
		{"text", "POST", "/exchange", person, 415, []string{"Content-Type", "text/plain"}},
	} {
		a.refuses(c.what, a.call(c.method, c.path, c.body, c.headers...), c.status)
	}
	var last said
	for range 50 { // far more than may fail in a minute
		if last = a.call("POST", "/exchange", `{"id_token":"x.y.z","actor":"laptop"}`); last.status != 401 {
			break
		}
	}
	a.refuses("too many failures", last, 429)
	if got := a.call("POST", "/exchange", person); got.status != 200 {
		a.Errorf("who is right meanwhile: %d %s", got.status, got.raw)
	}
}
