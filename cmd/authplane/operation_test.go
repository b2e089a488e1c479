package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

const (
	retiredJSON = `{"op_id":"op1","kind":"retirement","owner":"u_a","actor":"laptop","uid":"uid1","outcome":"retired","step":"done","by":"operator",` +
		`"began":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:04:05.25Z","took_ms":250,"revoked":2,"evicted":3,"vacuous":false,"eviction":"swept",` +
		`"servers":["n1","n2"],"frontiers":{"WORK":7,"LOG":9}}`
	takenOverJSON = `{"op_id":"op2","kind":"takeover","owner":"u_a","actor":"laptop","uid":"uid1","outcome":"taken-over","step":"done","by":"operator",` +
		`"began":"2026-01-02T03:04:05Z","took_ms":1500,"revoked":0,"evicted":0,"vacuous":true,"eviction":"expired","servers":[],"epoch":2,"frontiers":{}}`
	pendingJSON = `{"op_id":"op1","kind":"retirement","owner":"u_a","actor":"laptop","uid":"uid1","outcome":"pending","step":"revoked","by":"operator",` +
		`"began":"2026-01-02T03:04:05Z","took_ms":9000,"revoked":2,"evicted":0,"vacuous":false,"eviction":"","servers":[],"frontiers":{},` +
		`"doing":"evicting","done":1,"total":3,"attempt":2,"waiting_for":"n2 does not answer\nmore","next":"authplane roster forget n2","retry_at":"2026-01-02T03:04:15Z"}`
)

// notOver is the refusal of whoever did not wait long enough.
func notOver() answer {
	return answer{503, `{"error":{"code":"unavailable","reason":"operation.pending","message":"look again: retirement op1 waits for: n2","request_id":"r-1",` +
		`"next":"authplane operations op1","retryable":true,"op_id":"op1","waiting_for":"n2"}}`}
}

func TestOperationsThatAreDone(t *testing.T) {
	tests := []struct {
		line  string
		path  string
		body  string
		query string
		sent  map[string]any
		want  []string
	}{
		{"retire u_a/laptop", "/v1/retire", retiredJSON, "wait=60", map[string]any{"owner": "u_a", "actor": "laptop"},
			[]string{"u_a/laptop", "uid1", "op1", "retired", "evicted      3", "by two sweeps of n1 n2", "LOG=9 WORK=7", "250ms"}},
		{"retire --sub alice --actor laptop --uid uid1 --wait 0s", "/v1/retire", retiredJSON, "wait=0",
			map[string]any{"sub": "alice", "actor": "laptop", "uid": "uid1"}, []string{"retired"}},
		{"takeover u_a.laptop --wait 10m", "/v1/takeover", takenOverJSON, "wait=600", map[string]any{"owner": "u_a", "actor": "laptop"},
			[]string{"op2", "taken-over", "epoch        2", "evicted      0", "by time", "1.5s"}},
		{"takeover --owner u_a --actor laptop --op op2", "/v1/takeover", takenOverJSON, "wait=60",
			map[string]any{"owner": "u_a", "actor": "laptop", "op_id": "op2"}, []string{"op2"}},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			d := newDouble(t, map[string]answer{"POST " + test.path: {200, test.body}})
			got := d.command(t, strings.Fields(test.line)...)
			if got.code != 0 || got.err != "" {
				t.Fatalf("exit %d: %s", got.code, got.err)
			}
			for _, want := range test.want {
				if !strings.Contains(got.out, want) {
					t.Errorf("%q is not in:\n%s", want, got.out)
				}
			}
			asked := d.last(t)
			if asked.query != test.query || !reflect.DeepEqual(asked.body, test.sent) || len(d.got) != 1 {
				t.Errorf("asked %+v", d.got)
			}
			asJSON := d.command(t, append(strings.Fields(test.line), "--json")...)
			if asJSON.code != 0 || asJSON.out != test.body+"\n" || asJSON.err != "" {
				t.Errorf("exit %d, JSON:\n%s%s", asJSON.code, asJSON.out, asJSON.err)
			}
		})
	}
}

// What is not over is no failure: it exits 4 and says what it waits for.
func TestOperationsThatAreNotOver(t *testing.T) {
	for _, verb := range []string{"retire", "takeover"} {
		d := newDouble(t, map[string]answer{"POST /v1/" + verb: notOver()})
		got := d.command(t, verb, "u_a/laptop")
		if got.code != messages.ExitUnavailable || got.out != "" || !strings.Contains(got.err, "waits for: n2") ||
			!strings.Contains(got.err, "next: authplane --dir "+d.dir+" operations op1") {
			t.Errorf("%s: exit %d\n%s%s", verb, got.code, got.out, got.err)
		}
		got = d.command(t, verb, "u_a/laptop", "--json")
		var told struct{ Error service.Refusal }
		if err := json.Unmarshal([]byte(got.err), &told); err != nil || got.code != messages.ExitUnavailable || told.Error.OpID != "op1" || told.Error.WaitingFor != "n2" {
			t.Errorf("%s: exit %d, %v\n%s", verb, got.code, err, got.err)
		}
		d = newDouble(t, map[string]answer{"POST /v1/" + verb: refusal(409, "conflict", "operation.conflict")})
		if got := d.command(t, verb, "u_a/laptop"); got.code != messages.ExitRefused {
			t.Errorf("%s: exit %d\n%s", verb, got.code, got.err)
		}
	}
}

func TestOperationsAreShown(t *testing.T) {
	all := `{"operations":[` + pendingJSON + `]}`
	d := newDouble(t, map[string]answer{
		"GET /v1/operations": {200, all}, "GET /v1/operations/op1": {200, pendingJSON}, "GET /v1/roster": {200, `{"servers":["n1","n2"]}`},
		"DELETE /v1/roster/n2": {200, `{"servers":["n1"]}`},
	})
	for _, test := range []struct {
		line, json string
		want       []string
	}{
		{"operations", all, []string{"op1", "retirement", "u_a/laptop", "evicting 1/3, attempt 2", "n2 does not answer  authplane --dir " + d.dir + " roster forget n2"}},
		{"operations op1", pendingJSON, []string{"op1", "pending", "evicting 1/3, attempt 2", "n2 does not answer", " roster forget n2"}},
		{"roster", `{"servers":["n1","n2"]}`, []string{"SERVER\nn1\nn2\n"}},
		{"roster forget n2", `{"servers":["n1"]}`, []string{"SERVER\nn1\n"}},
	} {
		got := d.command(t, strings.Fields(test.line)...)
		for _, want := range test.want {
			if got.code != 0 || !strings.Contains(got.out, want) {
				t.Errorf("%s: exit %d, %q is not in:\n%s%s", test.line, got.code, want, got.out, got.err)
			}
		}
		if got := d.command(t, append(strings.Fields(test.line), "--json")...); got.code != 0 || got.out != test.json+"\n" {
			t.Errorf("%s: exit %d, JSON:\n%s", test.line, got.code, got.out)
		}
	}
	if got := d.command(t, "roster", "forget", "n 9/x"); got.code != messages.ExitRefused || d.last(t).path != "/v1/roster/n 9/x" {
		t.Errorf("exit %d, asked %+v", got.code, d.last(t))
	}
}

func TestUsageErrorsOfOperations(t *testing.T) {
	for _, line := range []string{
		"retire", "retire u_a", "retire u_a/x u_a/y", "retire --sub a", "retire --sub a --owner u_a --actor x", "retire u_a/x --actor y",
		"retire u_a/x --wait 1ms", "retire u_a/x --wait -1s", "retire u_a/x --wait 11m", "retire u_a/x --op y", "takeover", "takeover /x",
		"operations a b", "roster n1", "roster forget", "roster forget a b", "grant u_a/x --secret-file f --new-incarnation",
	} {
		d := newDouble(t, nil)
		got := d.command(t, strings.Fields(line)...)
		if got.code != messages.ExitUsage || got.out != "" || len(d.got) > 0 {
			t.Errorf("%s: exit %d, asked %v\n%s%s", line, got.code, d.got, got.out, got.err)
		}
	}
}

func TestRevokePrintsItsOperation(t *testing.T) {
	body := `{"owner":"u_a","actor":"laptop","uid":"uid1","revision":4,"op_id":"op1"}`
	d := newDouble(t, map[string]answer{"DELETE /v1/grants/u_a/laptop": {200, body}, "GET /v1/grants": {200, `{"grants":[]}`}})
	if got := d.command(t, "revoke", "u_a/laptop"); got.code != 0 || !strings.Contains(got.out, "operation  op1") {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	if got := d.command(t, "revoke", "u_a/laptop", "--json"); got.out != body+"\n" {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
}

// Where nobody can drop a connection, it says by when it ends.
func TestRevokePrintsByWhenItEnds(t *testing.T) {
	body := `{"owner":"u_a","actor":"laptop","uid":"uid1","revision":4,"op_id":"op1","ends_by":"2026-01-02T03:19:10Z"}`
	d := newDouble(t, map[string]answer{"DELETE /v1/grants/u_a/laptop": {200, body}, "GET /v1/grants": {200, `{"grants":[]}`}})
	at := time.Date(2026, 1, 2, 3, 19, 10, 0, time.UTC)
	if got := d.command(t, "revoke", "u_a/laptop"); got.code != 0 || !strings.Contains(got.out, "ends by") || !strings.Contains(got.out, moment(at)) {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	if got := d.command(t, "revoke", "u_a/laptop", "--json"); got.out != body+"\n" {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
}

func TestGrantANewIncarnation(t *testing.T) {
	d := newDouble(t, map[string]answer{
		"POST /v1/grants": {201, writtenJSON}, "GET /v1/grants/u_a/laptop": {200, grantJSON}, "PUT /v1/grants/u_a/laptop": {200, writtenJSON},
	})
	for _, line := range []string{"grant u_a/laptop --new-incarnation", "grant u_a/laptop --edit --new-incarnation"} {
		if got := d.command(t, strings.Fields(line)...); got.code != 0 || d.last(t).body["new_incarnation"] != true {
			t.Errorf("%s: exit %d, sent %v\n%s", line, got.code, d.last(t).body, got.err)
		}
	}
	if got := d.command(t, "grant", "u_a/laptop"); got.code != 0 || d.last(t).body["new_incarnation"] != nil {
		t.Errorf("exit %d, sent %v", got.code, d.last(t).body)
	}
	// A person has no secret, so that there is nothing to write.
	file := t.TempDir() + "/secret"
	if got := d.command(t, "grant", "u_a/laptop", "--edit", "--new-incarnation", "--secret-file", file); got.code != 0 || !strings.Contains(got.err, "no secret") {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
}

// screen is what a terminal gets.
type screen struct {
	mu      sync.Mutex
	written bytes.Buffer
	// grown is told of every write; it holds one word, more are dropped.
	grown chan struct{}
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		select {
		case s.grown <- struct{}{}:
		default:
		}
	}()
	return s.written.Write(b)
}

func (s *screen) shows() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written.String()
}

// Whoever looks on sees one line while an operation runs, and nothing of it after.
func TestTheProgressIsShown(t *testing.T) {
	d := newDouble(t, map[string]answer{"GET /v1/operations/op1": {200, pendingJSON}})
	on := &screen{grown: make(chan struct{}, 1)}
	a := &app{dir: d.dir, out: &bytes.Buffer{}, err: on, getenv: func(string) string { return "" }}
	client, err := a.reach()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const line = afresh + "retirement: evicting 1/3, attempt 2, waits for: n2 does not answer"
	var waits []time.Duration
	joined := ""
	ask := func(wait time.Duration) (operation, error) {
		waits = append(waits, wait)
		if wait == 0 {
			return operation{}, &service.Refusal{Code: messages.Unavailable, OpID: "op1"}
		}
		for deadline := time.After(time.Minute); !strings.Contains(on.shows(), line); {
			select {
			case <-on.grown:
			case <-deadline:
				return operation{}, errors.New("no line")
			}
		}
		return operation{OpID: "op1"}, nil
	}
	o, err := a.watched(t.Context(), client, time.Minute, ask, func(id string) { joined = id })
	if err != nil || o.OpID != "op1" || joined != "op1" || fmt.Sprint(waits) != "[0s 1m0s]" {
		t.Errorf("%+v, %v, joined %q, waits %v", o, err, joined, waits)
	}
	if shown := on.shows(); !strings.HasPrefix(shown, line) || !strings.HasSuffix(shown, afresh) || strings.Contains(shown, "\n") {
		t.Errorf("shown %q", shown)
	}
	// What is over at once, or refused, shows no line.
	on.written.Reset()
	for _, refused := range []error{nil, messages.IncarnationEnded} {
		if _, err := a.watched(t.Context(), client, time.Minute, func(time.Duration) (operation, error) { return o, refused }, nil); err != refused || on.shows() != "" {
			t.Errorf("%v, shown %q", err, on.shows())
		}
	}
}

func TestALineNeverWraps(t *testing.T) {
	for text, want := range map[string]string{"short": "short", strings.Repeat("ä", 80): strings.Repeat("ä", 78) + "…", strings.Repeat("a", 79): strings.Repeat("a", 79)} {
		if got := shortened(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}
