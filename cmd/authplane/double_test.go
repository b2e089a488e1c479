package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
)

const capability = "cap-of-the-double"

// seen is one request that the double got.
type seen struct {
	method, path, query, authorization string
	body                               map[string]any
}

// double answers as a service does, with what a test laid out for each path.
type double struct {
	*httptest.Server
	dir string

	mu      sync.Mutex
	answers map[string]answer
	then    map[string]answer // what takes the place of an answer once that was given
	got     []seen
}

type answer struct {
	status int
	body   string
}

// newDouble starts a double and leaves its record as a service in dir would.
func newDouble(t *testing.T, answers map[string]answer) *double {
	t.Helper()
	d := &double{dir: t.TempDir(), answers: answers}
	d.Server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.Close)
	state := filepath.Join(d.dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(state, "capability")
	if err := os.WriteFile(file, []byte(capability+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	record := service.Record{
		Space: "acme", NATSURL: "nats://127.0.0.1:4222", URL: d.URL, CapabilityFile: file,
		SentinelCreds: "/srv/sentinel.creds", ProviderIssuer: d.URL + "/idp", StateDir: state, PID: os.Getpid(),
	}
	body, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, service.RecordFile), body, 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

// provider has the record name another issuer.
func (d *double) provider(t *testing.T, issuer string) {
	t.Helper()
	file := filepath.Join(d.dir, "state", service.RecordFile)
	body, err := os.ReadFile(file)
	var record service.Record
	if err = errors.Join(err, json.Unmarshal(body, &record)); err != nil {
		t.Fatal(err)
	}
	record.ProviderIssuer = issuer
	if body, err = json.Marshal(record); err == nil {
		err = os.WriteFile(file, body, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (d *double) serve(w http.ResponseWriter, r *http.Request) {
	request := seen{method: r.Method, path: r.URL.Path, query: r.URL.RawQuery, authorization: r.Header.Get("Authorization")}
	if body, _ := io.ReadAll(r.Body); len(body) > 0 {
		if err := json.Unmarshal(body, &request.body); err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
	}
	d.mu.Lock()
	d.got = append(d.got, request)
	asked := r.Method + " " + r.URL.Path
	reply, known := d.answers[asked]
	if next, is := d.then[asked]; is {
		d.answers[asked] = next
	}
	d.mu.Unlock()
	if !known {
		reply = refusal(404, "not-found", "request.route")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(reply.status)
	_, _ = io.WriteString(w, reply.body)
}

// last is the latest request.
func (d *double) last(t *testing.T) seen {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.got) == 0 {
		t.Fatal("nothing was asked of the service")
	}
	return d.got[len(d.got)-1]
}

func refusal(status int, code, reason string) answer {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{
		"code": code, "reason": reason, "message": "the message", "request_id": "r-1", "next": "authplane grants",
	}})
	return answer{status, string(body)}
}

// result is what came of one command line.
type result struct {
	code     int
	out, err string
}

// command runs a command line against the double.
func (d *double) command(t *testing.T, args ...string) result {
	t.Helper()
	return runIn(t, "", append([]string{"--dir", d.dir}, args...)...)
}

// runIn runs a command line with the given input.
func runIn(t *testing.T, input string, args ...string) result {
	t.Helper()
	var out, talk bytes.Buffer
	a := &app{in: strings.NewReader(input), out: &out, err: &talk, getenv: func(string) string { return "" }}
	code := a.run(args)
	return result{code, out.String(), talk.String()}
}
