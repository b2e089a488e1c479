package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

const (
	grantJSON = `{"owner":"u_a","actor":"laptop","kind":"interactive","uid":"uid1","revision":3,"scope":["s"],` +
		`"publish":["chat.>"],"subscribe":["news.>"],"serve":true,"role":"","parent":"","label":"hers","state":"live",` +
		`"by":"operator","at":"2026-01-02T03:04:05Z"}`
	writtenJSON = `{"owner":"u_a","actor":"laptop","uid":"uid1","revision":4}`
	denialJSON  = `{"id":"d1","at":"2026-01-02T03:04:05Z","kind":"denied","code":"permission-denied","reason":"grant.absent",` +
		`"principal":"u_a.laptop","remedy":"it is not granted; next: authplane grant u_a/laptop"}`
)

// Every reading verb shows the answer in words and, with --json, as it came.
func TestReadingVerbs(t *testing.T) {
	tests := []struct {
		args []string
		path string
		body string
		want []string
	}{
		{[]string{"status"}, "/v1/status", `{"space":"acme","state":"unavailable","cause":"broker","since":"2026-01-02T03:04:05Z",` +
			`"plane":{"state":"standby","held_by_us":false,"holder":"i-2","waiting_for":"i-2 to end","next":"authplane status"}}`,
			[]string{"acme", "unavailable", "broker", "standby, held by i-2", "i-2 to end", " status\n"}},
		{[]string{"status"}, "/v1/status", `{"space":"acme","state":"ready","since":"2026-01-02T03:04:05Z","plane":{"state":"active",` +
			`"held_by_us":true,"holder":"i-1","since":"2026-01-02T03:04:05Z"}}`, []string{"active since 2026-01-02 ", ", held by this process, i-1\n"}},
		{[]string{"tree"}, "/v1/tree", `{"actors":[{"path":"acme","state":"open","generation":1,"restarts":0,"label":"","last_error":""},` +
			`{"path":"plane","state":"open","generation":1,"restarts":0,"label":"","last_error":""},` +
			`{"path":"plane/writer","state":"restarting","generation":7,"restarts":6,"label":"cotal:auth-mint:acme","last_error":"boom\nmore"},` +
			`{"path":"exchange","state":"open","generation":1,"restarts":0,"label":"","last_error":""}]}`,
			[]string{"acme  ", "├── plane ", "│   └── writer  restarting  7     6         cotal:auth-mint:acme  boom\n",
				"└── exchange    open        1     0         -                     -\n"}},
		{[]string{"connections"}, "/v1/connections", `{"connections":[{"label":"one","ended":false},{"label":"two","ended":true}]}`,
			[]string{"one    live", "two    ended"}},
		{[]string{"explain"}, "/v1/denials", `{"denials":[` + denialJSON + `]}`, []string{"d1", "grant.absent", "u_a.laptop"}},
		{[]string{"explain", "d1"}, "/v1/denials/d1", denialJSON, []string{"denied", "grant.absent", "authplane --dir ", " grant u_a/laptop"}},
		{[]string{"grants"}, "/v1/grants", `{"grants":[` + grantJSON + `]}`, []string{"u_a/laptop", "interactive", "live", "chat.>", "hers"}},
		{[]string{"show", "u_a/laptop"}, "/v1/grants/u_a/laptop", grantJSON, []string{"u_a/laptop", "uid1", "chat.>", "news.>", "true"}},
	}
	for _, test := range tests {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			d := newDouble(t, map[string]answer{"GET " + test.path: {200, test.body}})
			if test.path == "/v1/tree" {
				d.answers["GET /v1/status"] = answer{200, `{"state":"ready"}`} // of a space without a plane
			}
			text := d.command(t, test.args...)
			if text.code != 0 {
				t.Fatalf("exit %d: %s", text.code, text.err)
			}
			for _, want := range test.want {
				if !strings.Contains(text.out, want) {
					t.Errorf("%q is not in:\n%s", want, text.out)
				}
			}
			if got := d.last(t).authorization; got != "Bearer "+capability {
				t.Errorf("called with %q", got)
			}
			asJSON := d.command(t, append(test.args, "--json")...)
			if asJSON.code != 0 || asJSON.out != test.body+"\n" {
				t.Errorf("exit %d, JSON:\n%s", asJSON.code, asJSON.out)
			}
		})
	}
}

// Under the tree stands what the plane waits for: a claim that is awaited is an actor
// that is open.
func TestTheTreeSaysWhoHoldsThePlane(t *testing.T) {
	d := newDouble(t, map[string]answer{
		"GET /v1/tree": {200, `{"actors":[{"path":"plane/claim","state":"open","generation":1,"restarts":0,"label":"","last_error":""}]}`},
		"GET /v1/status": {200, `{"state":"ready","plane":{"state":"standby","held_by_us":false,"holder":"i-2","since":"2026-01-02T03:04:05Z",` +
			`"waiting_for":"i-2 to end","next":"authplane status"}}`},
	})
	got := d.command(t, "tree")
	tree, plane, _ := strings.Cut(got.out, "claim")
	if got.code != 0 || tree == "" {
		t.Fatalf("exit %d, %s%s", got.code, got.out, got.err)
	}
	for _, want := range []string{"standby since 2026-01-02 ", ", held by i-2\n", "i-2 to end\n", "authplane --dir " + d.dir + " status\n"} {
		if !strings.Contains(plane, want) {
			t.Errorf("%q is not in:\n%s", want, plane)
		}
	}
}

// Grants that cannot be shown are told of beside those that can.
func TestGrantsThatCannotBeRead(t *testing.T) {
	for _, args := range [][]string{{"grants"}, {"grants", "--json"}} {
		d := newDouble(t, map[string]answer{"GET /v1/grants": {200, `{"grants":[` + grantJSON + `],"unreadable":["grant.u_b.\u001b"]}`}})
		got := d.command(t, args...)
		if got.code != 0 || !strings.Contains(got.out, "laptop") || !strings.Contains(got.err, `"grant.u_b.\x1b"`) {
			t.Errorf("%v: exit %d, out %s, err %s", args, got.code, got.out, got.err)
		}
	}
}

// A space that is ready may have problems all the same.
func TestProblemsAreShown(t *testing.T) {
	d := newDouble(t, map[string]answer{"GET /v1/status": {200, `{"space":"acme","state":"ready","problems":["one","another"]}`}})
	if got := d.command(t, "status"); got.code != 0 || !strings.Contains(got.out, "ready") || !strings.Contains(got.out, "one; another") {
		t.Errorf("exit %d, %s", got.code, got.out)
	}
}

// What the service refuses becomes the exit code of its class, with reason, request
// and next step on the error stream.
func TestRefusalsBecomeExitCodes(t *testing.T) {
	tests := []struct {
		status int
		code   string
		want   int
	}{
		{400, "bad-request", 2}, {401, "unauthenticated", 3}, {403, "permission-denied", 3}, {404, "not-found", 3},
		{409, "already-exists", 3}, {412, "failed-precondition", 3}, {409, "conflict", 3}, {401, "expired", 3},
		{503, "unavailable", 4}, {429, "overloaded", 4}, {500, "internal", 1}, {501, "unimplemented", 1},
	}
	for _, test := range tests {
		d := newDouble(t, map[string]answer{"GET /v1/grants": refusal(test.status, test.code, "the.reason")})
		got := d.command(t, "grants")
		if got.code != test.want || got.out != "" {
			t.Errorf("%s: exit %d, output %q", test.code, got.code, got.out)
		}
		for _, want := range []string{"the message (the.reason)", "request: r-1", "next: authplane --dir " + d.dir + " grants"} {
			if !strings.Contains(got.err, want) {
				t.Errorf("%s: %q is not in:\n%s", test.code, want, got.err)
			}
		}
	}
}

func TestAnswersThatAreNotOurs(t *testing.T) {
	for status, want := range map[int]int{502: 4, 503: 4, 404: 3, 500: 1, 302: 1} {
		d := newDouble(t, map[string]answer{"GET /v1/status": {status, "<html>"}})
		if got := d.command(t, "status"); got.code != want {
			t.Errorf("%d: exit %d, want %d", status, got.code, want)
		}
	}
	d := newDouble(t, map[string]answer{"GET /v1/status": {200, "<html>"}})
	if got := d.command(t, "status"); got.code != 1 {
		t.Errorf("no JSON: exit %d", got.code)
	}
}

func TestUsageErrors(t *testing.T) {
	for _, line := range []string{
		"nonsense", "status extra", "status --nonsense", "revoke", "revoke u_a", "show /x", "explain a b",
		"grant", "grant --actor x", "grant --sub a --owner u_a --actor x", "grant --sub a", "grant u_a/x --sub a",
		"grant --sub a --actor x --secret-file f", "grant --sub a --actor x --parent u_a/y", "grant --sub a --actor x --revision 2",
		"grant --edit --sub a --actor x", "grant --edit u_a/x --parent u_a/y --managed", "grant --edit u_a/x --revision no",
		"token", "token --actor x", "token --sub a", "token --sub a --actor x --id-token-file f", "token --owner u_a --actor x",
		"token --actor x --actor-token-file f", "token --sub a --actor x --ttl 1ms", "context --sub a --actor x --name ../y",
		"context --sub a --actor x --name y --out z", "token u_a/x", "token u_a --sub a", "token u_a/x --actor x --sub a",
		"help nonsense", "--nonsense", "serve", "serve --standby --no-standby", "serve --config nowhere.yaml", "init", "init --space a",
	} {
		t.Run(line, func(t *testing.T) {
			d := newDouble(t, nil)
			args := strings.Fields(line)
			if args[0] != "init" { // it must be told --dir by whoever calls it
				args = append([]string{"--dir", d.dir}, args...)
			}
			got := runIn(t, "", args...)
			if got.code != messages.ExitUsage || got.out != "" || !strings.HasPrefix(got.err, "authplane: ") {
				t.Errorf("exit %d\nout: %s\nerr: %s", got.code, got.out, got.err)
			}
			if len(d.got) > 0 {
				t.Errorf("the service was asked: %v", d.got)
			}
		})
	}
}

func TestGrantSendsWhatItWasTold(t *testing.T) {
	tests := []struct {
		line string
		want map[string]any
	}{
		{"--sub alice --actor laptop", map[string]any{
			"sub": "alice", "actor": "laptop", "scope": []any{}, "publish": []any{}, "subscribe": []any{}, "serve": false}},
		{"u_a/laptop --scope a,b --publish x.> --publish y.> --subscribe z --serve --role wide --label hers", map[string]any{
			"owner": "u_a", "actor": "laptop", "scope": []any{"a", "b"}, "publish": []any{"x.>", "y.>"},
			"subscribe": []any{"z"}, "serve": true, "role": "wide", "label": "hers"}},
		{"u_a/robot --managed", map[string]any{
			"owner": "u_a", "actor": "robot", "scope": []any{}, "publish": []any{}, "subscribe": []any{}, "serve": false, "kind": "managed"}},
		{"--owner u_a --actor robot --managed --parent u_a/laptop", map[string]any{
			"owner": "u_a", "actor": "robot", "scope": []any{}, "publish": []any{}, "subscribe": []any{}, "serve": false,
			"kind": "managed", "parent": "u_a.laptop"}},
	}
	for _, test := range tests {
		d := newDouble(t, map[string]answer{"POST /v1/grants": {201, writtenJSON}})
		got := d.command(t, append([]string{"grant"}, strings.Fields(test.line)...)...)
		if got.code != 0 || !strings.Contains(got.out, "u_a/laptop") {
			t.Errorf("%s: exit %d\n%s%s", test.line, got.code, got.out, got.err)
		}
		if sent := d.last(t).body; !reflect.DeepEqual(sent, test.want) {
			t.Errorf("%s sent\n%v, want\n%v", test.line, sent, test.want)
		}
	}
}

func TestAMachinesSecretIsPrintedOnce(t *testing.T) {
	body := `{"owner":"u_a","actor":"robot","uid":"uid1","revision":1,"actor_token":"S3CRET"}`
	d := newDouble(t, map[string]answer{"POST /v1/grants": {201, body}})
	got := d.command(t, "grant", "u_a/robot", "--managed", "--parent", "u_a/laptop")
	if strings.Count(got.out, "S3CRET") != 1 || strings.Contains(got.err, "S3CRET") {
		t.Errorf("out: %s\nerr: %s", got.out, got.err)
	}
}

func TestAMachinesSecretGoesIntoAFile(t *testing.T) {
	body := `{"owner":"u_a","actor":"robot","uid":"uid1","revision":1,"actor_token":"S3CRET"}`
	d := newDouble(t, map[string]answer{"POST /v1/grants": {201, body}})
	dir := t.TempDir()
	file := filepath.Join(dir, "robot.secret")
	got := d.command(t, "grant", "u_a/robot", "--managed", "--secret-file", file, "--json")
	if got.code != 0 || strings.Contains(got.out+got.err, "S3CRET") || !strings.Contains(got.out, `"secret_file":"`+file+`"`) {
		t.Errorf("exit %d, out: %s\nerr: %s", got.code, got.out, got.err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if held, err := os.ReadFile(file); err != nil || string(held) != "S3CRET" {
		t.Errorf("holds %q, %v", held, err)
	}

	d = newDouble(t, map[string]answer{"POST /v1/grants": refusal(409, "conflict", "grant.live")})
	if got := d.command(t, "grant", "u_a/robot", "--managed", "--secret-file", filepath.Join(dir, "other")); got.code != 3 {
		t.Errorf("refused, and exit %d", got.code)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
	d = newDouble(t, nil)
	if got := d.command(t, "grant", "u_a/robot", "--managed", "--secret-file", filepath.Join(file, "below")); got.code != 1 || len(d.got) != 0 {
		t.Errorf("exit %d; a secret was asked for that has nowhere to go: %v", got.code, d.got)
	}
}

func TestEditKeepsWhatIsNotNamed(t *testing.T) {
	tests := []struct {
		line string
		want map[string]any
	}{
		{"--publish a,b", map[string]any{"revision": 3.0, "scope": []any{"s"}, "publish": []any{"a", "b"},
			"subscribe": []any{"news.>"}, "serve": true, "role": "", "label": "hers"}},
		{"--revision 2 --serve=false --label new", map[string]any{"revision": 2.0, "scope": []any{"s"}, "publish": []any{"chat.>"},
			"subscribe": []any{"news.>"}, "serve": false, "role": "", "label": "new"}},
		{"--rotate-secret --publish=", map[string]any{"revision": 3.0, "scope": []any{"s"}, "publish": []any{},
			"subscribe": []any{"news.>"}, "serve": true, "role": "", "label": "hers", "rotate_secret": true}},
	}
	for _, test := range tests {
		d := newDouble(t, map[string]answer{
			"GET /v1/grants/u_a/laptop": {200, grantJSON}, "PUT /v1/grants/u_a/laptop": {200, writtenJSON},
		})
		got := d.command(t, append([]string{"grant", "--edit", "u_a/laptop"}, strings.Fields(test.line)...)...)
		if got.code != 0 {
			t.Errorf("%s: exit %d: %s", test.line, got.code, got.err)
		}
		if sent := d.last(t); sent.method != "PUT" || !reflect.DeepEqual(sent.body, test.want) {
			t.Errorf("%s sent %s\n%v, want\n%v", test.line, sent.method, sent.body, test.want)
		}
	}
}

// grantsJSON lists a laptop, a robot below it and a lamp below that, in the given states.
func grantsJSON(laptop, robot, lamp messages.GrantState) string {
	const one = `{"owner":"u_a","actor":%q,"kind":"managed","uid":%q,"parent":%q,"state":%q}`
	return fmt.Sprintf(`{"grants":[`+one+","+one+","+one+`]}`, "laptop", "uid1", "", laptop,
		"robot", "uid2", "u_a.laptop", robot, "lamp", "uid3", "u_a.robot", lamp)
}

// Revoking says which machines ended with it, and which had ended before it does not.
func TestRevokeNamesWhoEndedWithIt(t *testing.T) {
	const live, over = messages.GrantLive, messages.GrantRevoked
	tests := []struct {
		name, before, after, want string
	}{
		{"nobody below", `{"grants":[]}`, `{"grants":[]}`, ""},
		{"two below", grantsJSON(live, live, live), grantsJSON(over, over, over), `"ended":["u_a/robot","u_a/lamp"]`},
		{"one had ended before", grantsJSON(live, over, live), grantsJSON(over, over, over), `"ended":["u_a/lamp"]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDouble(t, map[string]answer{"DELETE /v1/grants/u_a/laptop": {200, writtenJSON}, "GET /v1/grants": {200, test.before}})
			d.then = map[string]answer{"GET /v1/grants": {200, test.after}}
			got := d.command(t, "revoke", "u_a.laptop", "--json")
			want := strings.TrimSuffix(writtenJSON, "}")
			if test.want != "" {
				want += "," + test.want
			}
			if got.code != 0 || got.out != want+"}\n" {
				t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
			}
		})
	}
	d := newDouble(t, map[string]answer{"DELETE /v1/grants/u_a/laptop": {200, writtenJSON}, "GET /v1/grants": refusal(503, "unavailable", "x")})
	if got := d.command(t, "revoke", "u_a/laptop", "--json"); got.code != 0 || got.out != writtenJSON+"\n" || !strings.Contains(got.err, "not known") {
		t.Errorf("where grants cannot be listed: exit %d\n%s%s", got.code, got.out, got.err)
	}
}

const bearerJSON = `{"token":"BEARER","owner":"u_a","expires_at":"2026-01-02T03:04:05Z"}`

func TestTokenExchangesEveryKindOfProof(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("  S3CRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, input string
		args        []string
		want        map[string]any
	}{
		{"development login", "", []string{"--sub", "alice", "--actor", "laptop"}, map[string]any{"id_token": "IDTOKEN", "actor": "laptop"}},
		{"id token from the input", "GIVEN\n", []string{"--id-token-file", "-", "--actor", "laptop", "--ttl", "90s"},
			map[string]any{"id_token": "GIVEN", "actor": "laptop", "ttl_seconds": 90.0}},
		{"machine", "", []string{"--owner", "u_a", "--actor", "robot", "--actor-token-file", file},
			map[string]any{"owner": "u_a", "actor": "robot", "actor_token": "S3CRET"}},
		{"machine by one name", "", []string{"u_a/robot", "--actor-token-file", file},
			map[string]any{"owner": "u_a", "actor": "robot", "actor_token": "S3CRET"}},
		{"person by one name", "", []string{"u_a/laptop", "--sub", "alice"}, map[string]any{"id_token": "IDTOKEN", "actor": "laptop"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDouble(t, map[string]answer{
				"POST /idp/dev/token": {200, `{"id_token":"IDTOKEN"}`}, "POST /exchange": {200, bearerJSON},
			})
			args := append([]string{"--dir", d.dir, "token"}, test.args...)
			got := runIn(t, test.input, args...)
			if got.code != 0 || got.out != "BEARER\n" {
				t.Fatalf("exit %d, out %q, err %s", got.code, got.out, got.err)
			}
			if sent := d.last(t).body; !reflect.DeepEqual(sent, test.want) {
				t.Errorf("sent %v, want %v", sent, test.want)
			}
			for _, request := range d.got {
				if request.path == "/idp/dev/token" && request.authorization != "" {
					t.Error("the provider was shown the capability")
				}
			}
		})
	}
	t.Run("with what else to connect", func(t *testing.T) {
		d := newDouble(t, map[string]answer{"POST /idp/dev/token": {200, `{"id_token":"IDTOKEN"}`}, "POST /exchange": {200, bearerJSON}})
		got := d.command(t, "token", "--sub", "alice", "--actor", "laptop", "--json")
		want := strings.TrimSuffix(bearerJSON, "}") + `,"nats_url":"nats://127.0.0.1:4222","sentinel_creds":"/srv/sentinel.creds","inbox_prefix":"_INBOX_u_a-laptop"}`
		if got.code != 0 || got.out != want+"\n" {
			t.Errorf("exit %d, out %s, err %s", got.code, got.out, got.err)
		}
	})
	t.Run("somebody else's proof", func(t *testing.T) {
		d := newDouble(t, map[string]answer{"POST /idp/dev/token": {200, `{"id_token":"IDTOKEN"}`}, "POST /exchange": {200, bearerJSON}})
		if got := d.command(t, "token", "u_b/laptop", "--sub", "alice"); got.code != 3 || got.out != "" {
			t.Errorf("exit %d, out %s, err %s", got.code, got.out, got.err)
		}
	})
	t.Run("a provider that is not for development", func(t *testing.T) {
		d := newDouble(t, map[string]answer{"POST /idp/dev/token": {404, "nope"}})
		if got := d.command(t, "token", "--sub", "a", "--actor", "x"); got.code != 3 || got.out != "" {
			t.Errorf("exit %d, out %q, err %s", got.code, got.out, got.err)
		}
	})
	t.Run("a provider that does not answer", func(t *testing.T) {
		away := httptest.NewServer(nil)
		away.Close()
		d := newDouble(t, nil)
		d.provider(t, away.URL)
		got := d.command(t, "token", "--sub", "a", "--actor", "x")
		if got.code != 4 || !strings.Contains(got.err, "identity provider cannot be reached") || strings.Contains(got.err, "serve") {
			t.Errorf("exit %d, err %s", got.code, got.err)
		}
	})
	t.Run("no provider", func(t *testing.T) {
		d := newDouble(t, nil)
		d.provider(t, "")
		got := d.command(t, "token", "--sub", "a", "--actor", "x")
		if got.code != 1 || !strings.Contains(got.err, "no identity provider is configured") || !strings.Contains(got.err, "idp in authplane.yaml") {
			t.Errorf("exit %d, err %s", got.code, got.err)
		}
	})
	t.Run("an empty secret", func(t *testing.T) {
		d := newDouble(t, nil)
		if got := d.command(t, "token", "--id-token-file", "-", "--actor", "x"); got.code != 2 {
			t.Errorf("exit %d, err %s", got.code, got.err)
		}
	})
}

func TestContextIsWrittenForTheNatsTool(t *testing.T) {
	d := newDouble(t, map[string]answer{
		"POST /idp/dev/token": {200, `{"id_token":"IDTOKEN"}`}, "POST /exchange": {200, bearerJSON},
	})
	home := t.TempDir()
	run := func(args ...string) result {
		var out, talk strings.Builder
		a := &app{in: strings.NewReader(""), out: &out, err: &talk, getenv: func(name string) string {
			if name == "XDG_CONFIG_HOME" {
				return home
			}
			return ""
		}}
		code := a.run(append([]string{"--dir", d.dir, "context", "--sub", "alice", "--actor", "laptop"}, args...))
		return result{code, out.String(), talk.String()}
	}
	elsewhere := filepath.Join(t.TempDir(), "sub", "ctx.json")
	for path, args := range map[string][]string{
		filepath.Join(home, "nats", "context", "authplane-acme-laptop.json"): nil,
		filepath.Join(home, "nats", "context", "mine.json"):                  {"--name", "mine"},
		elsewhere: {"--out", elsewhere},
	} {
		got := run(args...)
		if got.code != 0 || got.out != path+"\n" || strings.Contains(got.out+got.err, "BEARER") {
			t.Fatalf("exit %d, out %q, err %s", got.code, got.out, got.err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v", info, err)
		}
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var written map[string]string
		if err := json.Unmarshal(body, &written); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"description": "u_a/laptop in acme", "url": "nats://127.0.0.1:4222", "token": "BEARER",
			"creds": "/srv/sentinel.creds", "inbox_prefix": "_INBOX_u_a-laptop",
		}
		if !reflect.DeepEqual(written, want) {
			t.Errorf("wrote %v", written)
		}
	}
}

func TestVersionNeedsNoService(t *testing.T) {
	got := runIn(t, "", "--dir", t.TempDir(), "version", "--json")
	var b build
	if err := json.Unmarshal([]byte(got.out), &b); got.code != 0 || err != nil || b.Go == "" {
		t.Errorf("exit %d, %v: %s", got.code, err, got.out)
	}
	if got := runIn(t, "", "--version"); got.code != 0 || got.out != "authplane "+b.Version+"\n" {
		t.Errorf("--version: exit %d: %s", got.code, got.out)
	}
	if got := runIn(t, "", "version"); got.code != 0 || !strings.Contains(got.out, "go ") {
		t.Errorf("exit %d: %s", got.code, got.out)
	}
}

func TestHelpIsData(t *testing.T) {
	for _, line := range [][]string{{}, {"help"}, {"--help"}} {
		got := runIn(t, "", line...)
		if got.code != 0 || !strings.Contains(got.out, "Run a service:") || got.err != "" {
			t.Errorf("%v: exit %d\n%s%s", line, got.code, got.out, got.err)
		}
	}
}
