package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
)

// next is the step that a command has named.
func next(t *testing.T, got result) string {
	t.Helper()
	_, step, named := strings.Cut(got.err, "\n  next: ")
	if !named {
		t.Errorf("no next step: exit %d, %s", got.code, got.err)
	}
	return strings.TrimSpace(step)
}

// A service that ended without a word is started as it was, and never by dev where init
// has been.
func TestWhatStartsAServiceThatDied(t *testing.T) {
	d := newDouble(t, nil)
	d.Server.Close() // its record stands
	if got := next(t, runIn(t, "", "--dir", d.dir, "status")); got != "authplane --dir "+d.dir+" dev" {
		t.Errorf("where nothing is: %q", got)
	}
	state := filepath.Join(d.dir, stateDir)
	if err := os.WriteFile(filepath.Join(state, space.InstanceFile), []byte("i"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := next(t, runIn(t, "", "--dir", state, "status")); got != "authplane serve --config <file> --state-dir "+state {
		t.Errorf("from a state directory alone: %q", got)
	}
	if got := runIn(t, "", "--dir", state, "dev"); got.code != messages.ExitRefused || !strings.Contains(got.err, "instance stands in it") {
		t.Errorf("dev in a state directory: exit %d, %s", got.code, got.err)
	}
	config := filepath.Join(d.dir, configFile)
	if err := os.WriteFile(config, []byte("space: acme\nnats_url: nats://127.0.0.1:1\nstate_dir: state\nsecrets_dir: s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := next(t, runIn(t, "", "--dir", d.dir, "status")); got != "authplane serve --config "+config {
		t.Errorf("from a directory of init: %q", got)
	}
}

// What the service takes for malformed leads to the help of the verb.
func TestWhatIsMalformedLeadsToTheHelp(t *testing.T) {
	d := newDouble(t, map[string]answer{"POST /v1/retire": {http.StatusBadRequest,
		`{"error":{"code":"bad-request","reason":"request.malformed","message":"m","next":""}}`}})
	if got := next(t, d.command(t, "retire", "foo/bar")); got != "authplane --dir "+d.dir+" help retire" {
		t.Errorf("next %q", got)
	}
}

// Whoever is not granted is named in the step that leads on.
func TestWhoIsNotGrantedIsNamed(t *testing.T) {
	d := newDouble(t, map[string]answer{"POST /exchange": {http.StatusForbidden,
		`{"error":{"code":"permission-denied","reason":"grant.absent","message":"m","next":"authplane grant <owner>/<actor>"}}`}})
	secret := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"show u_a/robot":   {"token", "u_a/robot", "--actor-token-file", secret},
		"grant u_a/laptop": {"token", "u_a/laptop", "--id-token-file", secret},
		"show u_a/phone":   {"context", "u_a/phone", "--actor-token-file", secret, "--out", secret + ".json"},
	} {
		if got := next(t, d.command(t, args...)); got != "authplane --dir "+d.dir+" "+want {
			t.Errorf("%v: next %q", args, got)
		}
	}
}

// What a machine's parents do not allow leads to their grants, since its own is not there.
func TestWhatParentsDoNotAllowLeadsToThem(t *testing.T) {
	refuse := func(reason string) answer {
		return answer{http.StatusForbidden, fmt.Sprintf(
			`{"error":{"code":"permission-denied","reason":%q,"message":"m","next":"authplane show u_a/robot"}}`, reason)}
	}
	for reason, want := range map[string]string{"grant.exceeded": "show u_a/laptop", "grant.parent": "grants", "grant.live": "show u_a/robot"} {
		d := newDouble(t, map[string]answer{"POST /v1/grants": refuse(reason), "POST /v1/enroll": refuse(reason)})
		secret := filepath.Join(t.TempDir(), "s")
		for _, args := range [][]string{{"grant", "--managed"}, {"enroll"}} {
			got := d.command(t, append(args, "u_a/robot", "--parent", "u_a/laptop", "--publish", "x", "--secret-file", secret)...)
			if step := next(t, got); step != "authplane --dir "+d.dir+" "+want {
				t.Errorf("%v, %s: next %q", args, reason, step)
			}
		}
	}
}

// Another process in the way is told of with what to do about it.
func TestAnotherProcessInTheWay(t *testing.T) {
	config := space.Config{NoStandby: true, StateDir: "/var/s 1"}
	for want, err := range map[string]error{
		"authplane --dir '/var/s 1' status": messages.StateDirTaken,
		"leave out --no-standby":            fmt.Errorf("open: %w", messages.ClaimLivePeer),
	} {
		told := (&app{dir: t.TempDir()}).describe(&verbError{besideAnother(config, err)}, "authplane serve")
		if !strings.Contains(told.Next, want) {
			t.Errorf("%v: next %q", err, told.Next)
		}
	}
}

// A retirement of who never had anything says so.
func TestARetirementOfWhoNeverWas(t *testing.T) {
	d := newDouble(t, map[string]answer{"POST /v1/retire": {http.StatusOK,
		`{"op_id":"","kind":"retirement","owner":"u_a","actor":"x","uid":"u1","outcome":"retired","vacuous":true}`}})
	if got := d.command(t, "retire", "u_a/x"); got.code != 0 || !strings.Contains(got.out, "nothing was ever issued to it") {
		t.Errorf("exit %d, %s%s", got.code, got.out, got.err)
	}
}
