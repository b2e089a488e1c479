package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

const enrolledJSON = `{"owner":"u_a","actor":"robot","uid":"uid1","revision":1,"step":"ready","again":false,"exchange_url":"https://x/exchange"}`

// The secret is made here, stands in its file before anything is asked, and never travels;
// the same line asks the same question.
func TestEnrollMakesASecret(t *testing.T) {
	d := newDouble(t, map[string]answer{"POST /v1/enroll": {201, enrolledJSON}})
	file := filepath.Join(t.TempDir(), "robot.secret")
	line := []string{"enroll", "u_a/robot", "--parent", "u_a/laptop", "--publish", "chat.robot", "--label", "x", "--secret-file", file}
	got := d.command(t, line...)
	if got.code != 0 || !strings.Contains(got.out, "u_a/robot") || !strings.Contains(got.out, "https://x/exchange") {
		t.Fatalf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	secret, err := os.ReadFile(file)
	info, failed := os.Stat(file)
	if err != nil || failed != nil || len(secret) != 43 || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file: %d bytes, %v, %v", len(secret), info, err)
	}
	first := d.last(t).body
	if hash, _ := first["token_hash"].(string); len(hash) != 64 || first["owner"] != "u_a" || first["parent"] != "u_a.laptop" {
		t.Errorf("asked %v", first)
	}
	for _, v := range first {
		if text, _ := v.(string); strings.Contains(text, string(secret)) {
			t.Error("the secret travels")
		}
	}
	if again := d.command(t, append(line, "--json")...); again.code != 0 || again.out != enrolledJSON+"\n" {
		t.Errorf("again: exit %d\n%s%s", again.code, again.out, again.err)
	}
	if second := d.last(t).body; second["token_hash"] != first["token_hash"] {
		t.Error("another secret was made")
	}
}

func TestEnrollAfterARefusal(t *testing.T) {
	for name, c := range map[string]struct {
		answer answer
		code   int
		stays  bool
	}{
		"refused": {refusal(412, "failed-precondition", "footprint.refused"), messages.ExitRefused, false},
		"not now": {refusal(503, "unavailable", "broker.away"), messages.ExitUnavailable, true},
		"broken":  {refusal(500, "internal", "internal"), messages.ExitFailed, true},
	} {
		d := newDouble(t, map[string]answer{"POST /v1/enroll": c.answer})
		file := filepath.Join(t.TempDir(), "robot.secret")
		got := d.command(t, "enroll", "u_a/robot", "--secret-file", file)
		if _, err := os.Stat(file); got.code != c.code || (err == nil) != c.stays {
			t.Errorf("%s: exit %d, the file: %v\n%s", name, got.code, err, got.err)
		}
	}
}

func TestEnrollMisuse(t *testing.T) {
	d := newDouble(t, nil)
	wide, other := filepath.Join(t.TempDir(), "wide"), filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(wide, []byte(strings.Repeat("a", 43)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"enroll", "enroll u_a/robot", "enroll u_a/robot --secret-file a --token-hash b", "enroll u_a/robot --find --token-hash b", "enroll --find",
		"enroll robot --token-hash b", "enroll u_a/robot --parent laptop --token-hash b", "enroll u_a/robot --secret-file " + wide, "enroll u_a/robot --secret-file " + other,
	} {
		if got := d.command(t, strings.Fields(line)...); got.code != messages.ExitUsage {
			t.Errorf("%s: exit %d\n%s", line, got.code, got.err)
		}
	}
	if len(d.got) > 0 {
		t.Errorf("asked %v", d.got)
	}
	if body, err := os.ReadFile(other); err != nil || string(body) != "something else" {
		t.Errorf("the file holds %q, %v", body, err)
	}
}

func TestEnrollFinds(t *testing.T) {
	d := newDouble(t, map[string]answer{"GET /v1/enroll/abc": {200, enrolledJSON}})
	if got := d.command(t, "enroll", "--find", "--token-hash", "abc"); got.code != 0 || !strings.Contains(got.out, "uid1") {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	if got := d.command(t, "enroll", "--find", "--token-hash", "abcd"); got.code != messages.ExitRefused {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	missing := filepath.Join(t.TempDir(), "none")
	if got := d.command(t, "enroll", "--find", "--secret-file", missing); got.code == 0 {
		t.Errorf("exit %d\n%s", got.code, got.out)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a search makes a secret")
	}
}
