package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

const (
	registeredJSON = `{"endpoint":"svc_a","instance":"i1","state":"open","epoch":4,"generation":9,"owner":"u_a","actor":"svc","held_by":"","revoked":2}`
	issuedJSON     = `{"token":"T0KEN","credential_id":"process-1","owner":"u_a","actor":"svc","expires_at":"2026-05-01T12:00:00Z"}`
	credentialAt   = "POST /v1/instances/svc_a/i1/credential"
)

func TestAProcessIsRegistered(t *testing.T) {
	d := newDouble(t, map[string]answer{"POST /v1/instances": {200, registeredJSON}})
	got := d.command(t, "register", "svc_a", "i1", "u_a/svc")
	if got.code != 0 || got.out != "registered i1 of svc_a at epoch 4; 2 credentials revoked\n" {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	if body := d.last(t).body; !reflect.DeepEqual(body, map[string]any{"endpoint": "svc_a", "instance": "i1", "owner": "u_a", "actor": "svc"}) {
		t.Errorf("asked %v", body)
	}
	if got := d.command(t, "register", "svc_a", "i1", "u_a/svc", "--json"); got.code != 0 || got.out != registeredJSON+"\n" {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
}

// The token alone is data; in a file it is nowhere else.
func TestAProcessGetsItsToken(t *testing.T) {
	d := newDouble(t, map[string]answer{credentialAt: {200, issuedJSON}})
	line := []string{"credential", "svc_a", "i1", "--epoch", "4"}
	got := d.command(t, line...)
	if got.code != 0 || got.out != "T0KEN\n" || !strings.HasPrefix(got.err, "u_a/svc until ") || strings.Contains(got.err, "T0KEN") {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	if body := d.last(t).body; !reflect.DeepEqual(body, map[string]any{"epoch": 4.0}) {
		t.Errorf("asked %v", body)
	}
	d.command(t, "credential", "svc_a", "i1", "--epoch", "0", "--ttl", "90s")
	if body := d.last(t).body; !reflect.DeepEqual(body, map[string]any{"epoch": 0.0, "ttl_seconds": 90.0}) {
		t.Errorf("asked %v", body)
	}
	whole := map[string]any{"token": "T0KEN", "credential_id": "process-1", "owner": "u_a", "actor": "svc", "expires_at": "2026-05-01T12:00:00Z",
		"nats_url": "nats://127.0.0.1:4222", "sentinel_creds": "/srv/sentinel.creds", "inbox_prefix": "_INBOX_u_a-svc"}
	told := func(args ...string) (fields map[string]any) {
		t.Helper()
		got := d.command(t, append(line, args...)...)
		if err := json.Unmarshal([]byte(got.out), &fields); err != nil || got.code != 0 {
			t.Fatalf("exit %d, %v\n%s%s", got.code, err, got.out, got.err)
		}
		return fields
	}
	if fields := told("--json"); !reflect.DeepEqual(fields, whole) {
		t.Errorf("told %v", fields)
	}
	file := filepath.Join(t.TempDir(), "svc.token")
	for range 2 { // over what stands there, too
		got = d.command(t, append(line, "--out", file)...)
		held, err := os.ReadFile(file)
		info, failed := os.Stat(file)
		if got.code != 0 || got.out != file+"\n" || strings.Contains(got.err, "T0KEN") || err != nil || failed != nil ||
			string(held) != "T0KEN" || info.Mode().Perm() != 0o600 {
			t.Errorf("exit %d, %d bytes, %v, %v\n%s%s", got.code, len(held), err, failed, got.out, got.err)
		}
	}
	delete(whole, "token")
	whole["file"] = file
	if fields := told("--json", "--out", file); !reflect.DeepEqual(fields, whole) {
		t.Errorf("told %v", fields)
	}
}

// What is refused leaves nothing, and a line that cannot be meant asks for nothing.
func TestProcessesThatAreRefused(t *testing.T) {
	for _, e := range []messages.Error{messages.InstanceHeld, messages.InstanceSuperseded, messages.InstanceForeign, messages.InstanceNotOpen,
		messages.CredentialGone, messages.NotGranted, messages.OutcomeUnknown} {
		refused := refusal(e.Code.HTTPStatus(), string(e.Code), e.Reason)
		d := newDouble(t, map[string]answer{"POST /v1/instances": refused, credentialAt: refused})
		dir := t.TempDir()
		file := filepath.Join(dir, "svc.token")
		for _, line := range []string{"register svc_a i1 u_a/svc", "credential svc_a i1 --epoch 1", "credential svc_a i1 --epoch 1 --out " + file} {
			if got := d.command(t, strings.Fields(line)...); got.code != e.Code.ExitCode() || got.code == 0 || got.out != "" {
				t.Errorf("%s: %s: exit %d\n%s", e.Reason, line, got.code, got.out)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left, %v", e.Reason, left, err)
		}
	}
	d := newDouble(t, nil)
	for _, line := range []string{
		"register", "register svc_a i1", "register svc_a i1 svc", "register svc_a i1 u_a/svc x", "register svc_a i1 u_a/svc --epoch 1",
		"credential", "credential svc_a --epoch 1", "credential svc_a i1", "credential svc_a i1 --epoch -1", "credential svc_a i1 --epoch 1 --ttl 1ms",
	} {
		if got := d.command(t, strings.Fields(line)...); got.code != messages.ExitUsage || got.out != "" {
			t.Errorf("%s: exit %d\n%s", line, got.code, got.out)
		}
	}
	if got := d.command(t, "credential", "svc_a", "i1", "--epoch", "1", "--out", t.TempDir()); got.code == 0 {
		t.Errorf("over a directory: exit %d", got.code)
	}
	if len(d.got) > 0 {
		t.Errorf("asked %v", d.got)
	}
}
