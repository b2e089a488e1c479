package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

// With --json an error is one object on the error stream, whoever it comes from.
func TestErrorsAsJSON(t *testing.T) {
	d := newDouble(t, map[string]answer{"GET /v1/grants": refusal(503, "unavailable", "broker.away")})
	tests := []struct {
		args []string
		exit int
		want service.Refusal
	}{
		{[]string{"--dir", d.dir, "grants", "--json"}, 4, service.Refusal{Code: "unavailable", Reason: "broker.away",
			Message: "the message (broker.away)", RequestID: "r-1", Next: "authplane --dir " + d.dir + " grants"}},
		{[]string{"nonsense", "--json"}, 2, service.Refusal{Code: "bad-request", Reason: "command.usage",
			Message: `unknown command "nonsense" for "authplane"`, Next: "authplane help"}},
		{[]string{"grant", "--json"}, 2, service.Refusal{Code: "bad-request", Reason: "command.usage",
			Message: "--actor is missing", Next: "authplane help grant"}},
		{[]string{"--dir", "/nowhere else", "status", "--json"}, 4, service.Refusal{Code: "unavailable", Reason: "service.away",
			Message: "no service answers: nothing runs from /nowhere else", Next: "authplane --dir '/nowhere else' dev", Retryable: true}},
	}
	for _, test := range tests {
		got := runIn(t, "", test.args...)
		var told struct{ Error service.Refusal }
		if err := json.Unmarshal([]byte(got.err), &told); err != nil {
			t.Errorf("%v: %v in %s", test.args, err, got.err)
		}
		if got.code != test.exit || got.out != "" || told.Error != test.want {
			t.Errorf("%v: exit %d, out %q\ntold %+v\nwant %+v", test.args, got.code, got.out, told.Error, test.want)
		}
	}
}

// Errors of the system lead on too.
func TestWhatLeadsOnFromErrorsOfTheSystem(t *testing.T) {
	taken := fmt.Errorf("listen: %w", syscall.EADDRINUSE)
	for want, err := range map[string]error{
		"name another one in authplane.yaml":          taken,
		"as the user whose files these are":           fmt.Errorf("open: %w", fs.ErrPermission),
		"name a directory: one that":                  syscall.ENOTDIR,
		"make room":                                   syscall.ENOSPC,
		"name a file that is there":                   fmt.Errorf("open: %w", fs.ErrNotExist),
		"authplane --dir d/e help dev":                messages.Malformed.From(fs.ErrNotExist),
		"authplane --dir d/e serve --server-lost <n>": advised{errors.New("x"), "authplane serve --server-lost <n>"},
	} {
		told := (&app{dir: t.TempDir()}).describe(&verbError{err}, "authplane dev")
		if got := (&app{dir: "d/e"}).here(told.Next); !strings.Contains(got, want) {
			t.Errorf("%v: next %q, want %q", err, got, want)
		}
	}
}

// The ports of last time are no longer free: dev says which, and how to get others.
func TestDevWhoseBrokerCannotHaveItsPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dir := t.TempDir()
	if err := claimDir(dir); err != nil {
		t.Fatal(err)
	}
	if err := (addresses{Broker: listener.Addr().String()}).write(dir); err != nil {
		t.Fatal(err)
	}
	got := runIn(t, "", "--dir", dir, "dev")
	want := "next: end what listens on " + listener.Addr().String() + ", or rm " + filepath.Join(dir, addressFile)
	if got.code != messages.ExitFailed || got.out != "" || !strings.Contains(got.err, want) {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
}

// What keeps a command from finding its service is told: a start that is not over,
// and a configuration that cannot be read.
func TestWhyNoServiceIsFound(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, stateDir)
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(state, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := os.WriteFile(filepath.Join(state, "capability"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runIn(t, "", "--dir", dir, "status"); got.code != 4 || !strings.Contains(got.err, "nothing runs") {
		t.Errorf("left by a dead process: exit %d, %s", got.code, got.err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	got := runIn(t, "", "--dir", dir, "status")
	if got.code != messages.ExitUnavailable || !strings.Contains(got.err, "is starting, or waits for its broker") || !strings.Contains(got.err, "status") {
		t.Errorf("while it starts: exit %d, %s", got.code, got.err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, configFile)
	if err := os.WriteFile(config, []byte("spice: acme\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runIn(t, "", "--dir", dir, "status"); got.code != 2 || !strings.Contains(got.err, "line 1: spice: is not a setting") {
		t.Errorf("with a broken configuration: exit %d, %s", got.code, got.err)
	}
	good := "space: acme\nnats_url: nats://127.0.0.1:1\nstate_dir: state\nsecrets_dir: s\n"
	if err := os.WriteFile(config, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runIn(t, "", "--dir", dir, "status"); got.code != 4 || !strings.Contains(got.err, "next: authplane serve --config "+config) {
		t.Errorf("where nothing was started: exit %d, %s", got.code, got.err)
	}
}
