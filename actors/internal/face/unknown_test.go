package face

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

// What an endpoint does not know is refused before anything is done, wherever it
// stands: whoever says more than is understood may have meant less.
func TestWhatIsNotKnownIsRefused(t *testing.T) {
	w := newWorld(t)
	owner := w.grant("user-1", "laptop")
	bodies := map[string]string{
		"/exchange":                        `{"id_token":"` + w.idToken("user-1", 60e9) + `","actor":"laptop"}`,
		"/v1/grants":                       `{"owner":"` + owner + `","actor":"other"}`,
		"/v1/grants/{owner}/{actor}":       `{"revision":1}`,
		"/v1/enroll":                       `{"owner":"` + owner + `","actor":"bot","token_hash":"` + machineHash + `"}`,
		"/v1/retire":                       `{"owner":"` + owner + `","actor":"laptop"}`,
		"/v1/takeover":                     `{"owner":"` + owner + `","actor":"laptop"}`,
		"/v1/instances":                    `{"endpoint":"svc","instance":"` + someUID + `","owner":"` + owner + `","actor":"laptop"}`,
		"/v1/repair":                       `{"endpoint":"svc","instance":"` + someUID + `"}`,
		"/v1/runs/{endpoint}/{run}/revoke": `{"reason":"enough"}`,
		"/v1/debug/kill":                   `{"actor":"plane/writer","how":"panic"}`,

		"/v1/instances/{endpoint}/{instance}/credential": `{"epoch":0}`,
	}
	fill := strings.NewReplacer("{owner}", owner, "{actor}", "laptop", "{id}", someUID, "{name}", "n1", "{endpoint}", "svc", "{instance}", someUID, "{run}", "run-00000000000000000000000000000001")
	tried := 0
	for _, r := range w.loopback.routes {
		for method, e := range r.methods {
			if !e.closed() {
				continue
			}
			tried++
			url, body := w.url+fill.Replace(r.pattern), bodies[r.pattern]
			if len(e.media) == 0 {
				body = ""
			} else if body == "" {
				t.Fatalf("%s has no body here", r.pattern)
			}
			for _, query := range []string{"?force=true", "?wait=1&force=true", "?uid=" + someUID, "?%zz"} {
				w.refusesMalformed(method, url+query, body)
			}
			if !e.waits {
				w.refusesMalformed(method, url+"?wait=1", body)
			}
			if len(e.media) == 0 {
				w.refusesMalformed(method, url, `{"uid":null}`)
				w.refusesMalformed(method, url, "[]")
				w.refusesMalformed(method, url, `{"uid":"`+someUID+`"}`, inPieces)
			}
		}
	}
	if tried < 20 {
		t.Errorf("tried %d endpoints", tried)
	}
	w.unchanged(owner)
	// Whoever only frames an empty body in pieces has said nothing.
	if a := w.do("DELETE", w.url+"/v1/grants/"+owner+"/laptop", "", inPieces); a.status != http.StatusOK {
		t.Errorf("an empty body: %d %s", a.status, a.body)
	}
	for _, nothing := range []string{"null", " {} "} {
		if a := w.do("GET", w.url+"/v1/grants", nothing); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", nothing, a.status, a.body)
		}
	}
	// Probes and documents pass over what somebody on the way has added.
	for _, url := range []string{w.url + "/livez?verbose", w.url + "/jwks?x=1", w.url + "/metrics?x", w.publicURL + "/.well-known/cotal-mesh?x"} {
		if a := w.do("GET", url, "{}"); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", url, a.status, a.body)
		}
	}
}

// inPieces sends a body, empty perhaps, without saying how long it is.
func inPieces(r *http.Request) {
	if r.Body == nil {
		r.Body = io.NopCloser(strings.NewReader(""))
	}
	r.ContentLength, r.TransferEncoding = -1, []string{"chunked"}
}

func (w *world) refusesMalformed(method, url, body string, options ...option) {
	w.t.Helper()
	a := w.do(method, url, body, options...)
	if a.status != http.StatusBadRequest || method != http.MethodHead && a.reason() != messages.Malformed.Reason {
		w.t.Errorf("%s %s %q: %d %s", method, url, body, a.status, a.body)
	}
}

// unchanged insists that nothing was done to anybody.
func (w *world) unchanged(owner string) {
	w.t.Helper()
	a := w.do("GET", w.url+"/v1/grants", "")
	if list, _ := a.fields["grants"].([]any); len(list) != 1 || list[0].(map[string]any)["state"] != "live" || list[0].(map[string]any)["revision"] != 1.0 {
		w.t.Errorf("the grants are %s", a.body)
	}
	if n := w.rows.written(w.t, "head.>"); n != 0 {
		w.t.Errorf("%d exchanged", n)
	}
	if asked := w.gates.taken(); asked != "" {
		w.t.Errorf("instances were asked: %s", asked)
	}
	w.desk.mu.Lock()
	defer w.desk.mu.Unlock()
	if len(w.desk.retired)+len(w.desk.begun) != 0 || len(w.desk.servers) != 2 || len(w.control.killed) != 0 {
		w.t.Errorf("done were %v %v, servers are %v, killed %v", w.desk.retired, w.desk.begun, w.desk.servers, w.control.killed)
	}
}
