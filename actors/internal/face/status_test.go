package face

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Every status there is, by a request that gets it.
func TestStatuses(t *testing.T) {
	w := newWorld(t)
	owner := w.grant("user-1", "laptop")
	_, secret := w.machine("user-2", "robot")
	token := w.idToken("user-1", time.Hour)
	person := `{"id_token":"` + token + `","actor":"laptop"}`
	none := func(r *http.Request) { r.Header.Del("Authorization") }
	big := `{"id_token":"` + strings.Repeat("a", MaxBody) + `"}`
	exact := person + strings.Repeat(" ", MaxBody-len(person))

	for _, c := range []struct {
		name         string
		method, path string
		body         string
		options      []option
		status       int
		reason       string
	}{
		{"an exchange", "POST", "/exchange", person, nil, 200, ""},
		{"as a form", "POST", "/exchange", "actor=laptop&id_token=" + token, []option{header("Content-Type", mediaForm)}, 200, ""},
		{"media type with a charset", "POST", "/exchange", person, []option{header("Content-Type", "Application/JSON; charset=utf-8")}, 200, ""},
		{"a body as large as may be", "POST", "/exchange", exact, nil, 200, ""},
		{"one byte more", "POST", "/exchange", exact + " ", nil, 413, "request.too-large"},
		{"one byte more, in chunks", "POST", "/exchange", exact + " ", []option{func(r *http.Request) { r.ContentLength = -1 }}, 413, "request.too-large"},
		{"far too much", "POST", "/exchange", big, nil, 413, "request.too-large"},
		{"no body", "POST", "/exchange", "", []option{header("Content-Type", mediaJSON)}, 400, "request.malformed"},
		{"no media type", "POST", "/exchange", "", nil, 415, "request.media-type"},
		{"text", "POST", "/exchange", person, []option{header("Content-Type", "text/plain")}, 415, "request.media-type"},
		{"compressed", "POST", "/exchange", person, []option{header("Content-Encoding", "gzip")}, 415, "request.media-type"},
		{"a page", "POST", "/exchange", person, []option{header("Origin", "https://evil.example")}, 403, "request.origin"},
		{"a page of nowhere", "POST", "/exchange", person, []option{header("Origin", "")}, 403, "request.origin"},
		{"a page that reads", "GET", "/jwks", "", []option{header("Origin", "null")}, 403, "request.origin"},
		{"no capability", "POST", "/exchange", person, []option{none}, 401, "capability.invalid"},
		{"another capability", "POST", "/exchange", person, []option{header("Authorization", "Bearer "+strings.Repeat("0", 64))}, 401, "capability.invalid"},
		{"another scheme", "POST", "/exchange", person, []option{header("Authorization", "Basic "+w.capability.Reveal())}, 401, "capability.invalid"},
		{"the capability twice", "POST", "/exchange", person, []option{func(r *http.Request) { r.Header.Add("Authorization", r.Header.Get("Authorization")) }}, 401, "capability.invalid"},
		{"an empty capability", "GET", "/v1/status", "", []option{header("Authorization", "Bearer ")}, 401, "capability.invalid"},
		{"GET of an exchange", "GET", "/exchange", "", nil, 405, "request.method"},
		{"PATCH of a grant", "PATCH", "/v1/grants/" + owner + "/laptop", "{}", nil, 405, "request.method"},
		{"OPTIONS", "OPTIONS", "/exchange", "", nil, 405, "request.method"},
		{"nothing", "GET", "/", "", nil, 404, "request.route"},
		{"nothing either", "GET", "/v1/", "", nil, 404, "request.route"},
		{"a path that is not clean", "GET", "//jwks", "", nil, 404, "request.route"},
		{"the public face's document", "GET", "/.well-known/cotal-mesh", "", nil, 404, "request.route"},

		{"an unknown field", "POST", "/exchange", `{"id_token":"x","actor":"laptop","view":"admin"}`, nil, 400, "request.malformed"},
		{"a field in another case", "POST", "/exchange", `{"id_token":"x","Actor":"laptop"}`, nil, 400, "request.malformed"},
		{"a field twice", "POST", "/exchange", `{"id_token":"x","actor":"laptop","actor":"laptop"}`, nil, 400, "request.malformed"},
		{"bytes behind", "POST", "/exchange", person + "x", nil, 400, "request.malformed"},
		{"two proofs", "POST", "/exchange", `{"id_token":"x","actor":"laptop","actor_token":"y"}`, nil, 400, "request.malformed"},
		{"no proof", "POST", "/exchange", `{"actor":"laptop"}`, nil, 400, "request.malformed"},
		{"an empty proof", "POST", "/exchange", `{"id_token":"","actor":"laptop"}`, nil, 400, "request.malformed"},
		{"half a machine's", "POST", "/exchange", `{"owner":"` + owner + `","actor":"laptop"}`, nil, 400, "request.malformed"},
		{"a bad proof", "POST", "/exchange", `{"id_token":"x.y.z","actor":"laptop"}`, nil, 401, "proof.invalid"},
		{"a lapsed proof", "POST", "/exchange", `{"id_token":"` + w.idToken("user-1", -time.Minute) + `","actor":"laptop"}`, nil, 401, "proof.expired"},
		{"not granted", "POST", "/exchange", `{"id_token":"` + token + `","actor":"phone"}`, nil, 403, "grant.absent"},
		{"a machine by a person's proof", "POST", "/exchange", `{"id_token":"` + w.idToken("user-2", time.Hour) + `","actor":"robot"}`, nil, 403, "grant.kind"},
		{"a machine's secret for another", "POST", "/exchange", `{"owner":"` + owner + `","actor":"laptop","actor_token":"` + secret + `"}`, nil, 401, "proof.invalid"},

		{"granted already", "POST", "/v1/grants", `{"sub":"user-1","actor":"laptop"}`, nil, 409, "grant.live"},
		{"granted to both", "POST", "/v1/grants", `{"sub":"user-1","owner":"` + owner + `","actor":"a"}`, nil, 400, "request.malformed"},
		{"granted to a subject and no owner", "POST", "/v1/grants", `{"sub":"user-9","owner":"","actor":"a"}`, nil, 400, "request.malformed"},
		{"granted to no subject and an owner", "POST", "/v1/grants", `{"sub":"","owner":"` + owner + `","actor":"a"}`, nil, 400, "request.malformed"},
		{"granted to no owner", "POST", "/v1/grants", `{"owner":"","actor":"a"}`, nil, 400, "request.malformed"},
		{"granted to nobody", "POST", "/v1/grants", `{"actor":"a"}`, nil, 400, "request.malformed"},
		{"granted to no subject", "POST", "/v1/grants", `{"sub":"","actor":"a"}`, nil, 400, "request.malformed"},
		{"granted to an owner of none", "POST", "/v1/grants", `{"owner":"local","actor":"a"}`, nil, 400, "request.malformed"},
		{"a forbidden pattern", "POST", "/v1/grants", `{"sub":"user-1","actor":"a","publish":["$SYS.>"]}`, nil, 400, "request.malformed"},
		{"a null list", "POST", "/v1/grants", `{"sub":"user-1","actor":"a","publish":null}`, nil, 400, "request.malformed"},
		{"another kind", "POST", "/v1/grants", `{"sub":"user-1","actor":"a","kind":"root"}`, nil, 400, "request.malformed"},
		{"a person with a parent", "POST", "/v1/grants", `{"sub":"user-1","actor":"a","parent":"` + owner + `.laptop"}`, nil, 400, "request.malformed"},
		{"a label with control characters", "POST", "/v1/grants", `{"sub":"user-1","actor":"a","label":"a\u0007"}`, nil, 400, "request.malformed"},
		{"a machine that exceeds its parent", "POST", "/v1/grants", `{"owner":"` + owner + `","actor":"m","kind":"managed","parent":"` + owner + `.laptop","publish":["other.>"]}`, nil, 403, "grant.exceeded"},
		{"a machine of no parent", "POST", "/v1/grants", `{"owner":"` + owner + `","actor":"m","kind":"managed","parent":"` + owner + `.gone"}`, nil, 403, "grant.parent"},
		{"an edit of an old revision", "PUT", "/v1/grants/" + owner + "/laptop", `{"revision":7}`, nil, 409, "grant.moved"},
		{"an edit of none", "PUT", "/v1/grants/" + owner + "/phone", `{"revision":1}`, nil, 404, "grant.not-found"},
		{"an edit without a revision", "PUT", "/v1/grants/" + owner + "/laptop", `{}`, nil, 400, "request.malformed"},
		{"a grant of none", "GET", "/v1/grants/" + owner + "/phone", "", nil, 404, "grant.not-found"},
		{"a grant of a bad actor", "GET", "/v1/grants/" + owner + "/a.b", "", nil, 400, "request.malformed"},
		{"revoke none", "DELETE", "/v1/grants/" + owner + "/phone", "", nil, 404, "grant.not-found"},
		{"a denial", "GET", "/v1/denials/d1", "", nil, 200, ""},
		{"no denial", "GET", "/v1/denials/d2", "", nil, 404, "denial.not-found"},

		{"a kill", "POST", "/v1/debug/kill", `{"actor":"plane/writer","how":"panic"}`, nil, 202, ""},
		{"of none", "POST", "/v1/debug/kill", `{"actor":"plane/nobody","how":"stop"}`, nil, 404, "actor.unknown"},
		{"in a way it has not", "POST", "/v1/debug/kill", `{"actor":"plane/writer","how":"disconnect"}`, nil, 409, "actor.kill-inapplicable"},
		{"in a way there is not", "POST", "/v1/debug/kill", `{"actor":"plane/writer","how":"poison"}`, nil, 400, "request.malformed"},

		{"live", "GET", "/livez", "", []option{none}, 200, ""},
		{"ready", "GET", "/readyz", "", []option{none}, 200, ""},
		{"started", "GET", "/startupz", "", []option{none}, 200, ""},
		{"keys", "GET", "/jwks", "", []option{none}, 200, ""},
		{"keys, their head", "HEAD", "/jwks", "", []option{none}, 200, ""},
		{"metrics", "GET", "/metrics", "", []option{none}, 200, ""},
		{"HEAD of a stream", "HEAD", "/v1/events", "", nil, 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.do(c.method, w.url+c.path, c.body, c.options...)
			if a.status != c.status || a.reason() != c.reason {
				t.Fatalf("got %d %q (%.300s), want %d %q", a.status, a.reason(), a.body, c.status, c.reason)
			}
			if id := a.header.Get("X-Request-Id"); id == "" || c.reason != "" && a.text("error", "request_id") != id {
				t.Errorf("request id %q, body %s", id, a.body)
			}
			if c.status == 405 && a.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
			for _, name := range []string{"code", "reason", "message", "request_id", "next", "retryable"} {
				fields, _ := a.fields["error"].(map[string]any)
				if _, has := fields[name]; c.reason != "" && !has {
					t.Errorf("the refusal has no %s: %s", name, a.body)
				}
			}
		})
	}
}

func TestNoKillWithoutFaultInjection(t *testing.T) {
	w := newWorld(t)
	url := w.listen(Loopback(w.loopback.config, LoopbackConfig{Control: w.control, Capability: w.capability}))
	for _, method := range []string{"POST", "GET"} {
		if a := w.do(method, url+"/v1/debug/kill", `{"actor":"plane/writer","how":"panic"}`); a.status != 404 || a.reason() != "request.route" {
			t.Errorf("%s: got %d %s", method, a.status, a.body)
		}
	}
	if w.control.killed != nil {
		t.Error("something was killed")
	}
}

func TestAnAbsentCapabilityLetsNobodyIn(t *testing.T) {
	w := newWorld(t)
	url := w.listen(Loopback(w.loopback.config, LoopbackConfig{Control: w.control}))
	for _, given := range []string{"", "Bearer", "Bearer ", "Bearer x"} {
		if a := w.do("GET", url+"/v1/status", "", header("Authorization", given)); a.status != 401 {
			t.Errorf("%q: got %d", given, a.status)
		}
	}
}
