package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/devbroker"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

// twoSpaces writes a configuration of two spaces into dir and returns its path. Their
// brokers are at the given addresses, and what each has lies in a directory of its name.
func twoSpaces(t *testing.T, dir, alpha, beta string) string {
	t.Helper()
	body := "spaces:\n"
	for _, s := range [][2]string{{"alpha", alpha}, {"beta", beta}} {
		body += fmt.Sprintf("  - space: %[1]s\n    nats_url: %[2]s\n    state_dir: %[1]s/state\n    secrets_dir: %[1]s/secrets\n    sentinel_creds: %[1]s/sentinel.creds\n", s[0], s[1])
	}
	path := filepath.Join(dir, configFile)
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A command in the directory of several spaces is told how to name one.
func TestSeveralSpacesOfOneDirectory(t *testing.T) {
	dir := t.TempDir()
	twoSpaces(t, dir, "nats://127.0.0.1:1", "nats://127.0.0.1:1")
	got := runIn(t, "", "--dir", dir, "status")
	if got.code != messages.ExitUsage {
		t.Errorf("exit %d", got.code)
	}
	for _, space := range []string{"alpha", "beta"} {
		if want := space + ": --dir " + filepath.Join(dir, space, "state") + "\n"; !strings.Contains(got.err, want) {
			t.Errorf("%q is not in:\n%s", want, got.err)
		}
	}
	got = runIn(t, "", "--dir", filepath.Join(dir, "alpha"), "status")
	if got.code != messages.ExitUnavailable || !strings.Contains(got.err, "nothing runs from") {
		t.Errorf("in that of one: exit %d, %s", got.code, got.err)
	}
	if err := claimDir(filepath.Join(dir, "dev")); err != nil {
		t.Fatal(err)
	}
	twoSpaces(t, filepath.Join(dir, "dev"), "nats://127.0.0.1:1", "nats://127.0.0.1:1")
	got = runIn(t, "", "--dir", filepath.Join(dir, "dev"), "dev")
	if got.code != messages.ExitRefused || !strings.Contains(got.err, "is of several spaces, and dev runs one") {
		t.Errorf("dev: exit %d, %s", got.code, got.err)
	}
}

// install makes a space of a name, in a directory of that name, with a broker that runs until
// stop is called.
func install(t *testing.T, dir, name string) (url string, stop func()) {
	t.Helper()
	chain := filepath.Join(dir, name)
	if _, err := space.Init(t.Context(), space.InitOptions{Dir: chain, Space: name, NATSURL: "nats://127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	broker, err := devbroker.New(devbroker.Config{Dir: chain})
	if err != nil {
		t.Fatal(err)
	}
	run, err := broker.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return broker.URL(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := run.Stop(ctx); err != nil {
			t.Error(err)
		}
	}
}

// machine is somebody who connects with a secret.
type machine struct{ dir, secret string }

// newMachine grants one in the space of a directory.
func newMachine(t *testing.T, dir string) machine {
	t.Helper()
	m := machine{dir, filepath.Join(t.TempDir(), "secret")}
	for _, args := range [][]string{
		{exampleOwner + "/host", "--publish", "work.>"},
		{exampleOwner + "/robot", "--managed", "--parent", exampleOwner + "/host", "--publish", "work.done", "--secret-file", m.secret},
	} {
		if got := runIn(t, "", append([]string{"--dir", dir, "grant"}, args...)...); got.code != 0 {
			t.Fatalf("grant %v: exit %d, %s", args, got.code, got.err)
		}
	}
	return m
}

// connect logs in and connects once.
func (m machine) connect(t *testing.T) error {
	got := runIn(t, "", "--dir", m.dir, "token", exampleOwner+"/robot", "--actor-token-file", m.secret, "--json")
	var b bearer
	if err := json.Unmarshal([]byte(got.out), &b); err != nil {
		return fmt.Errorf("token: exit %d, %s", got.code, got.err)
	}
	nc, err := nats.Connect(b.NATSURL, nats.UserCredentials(b.SentinelCreds), nats.Token(b.Token),
		nats.CustomInboxPrefix(b.InboxPrefix), nats.Timeout(patience))
	if err == nil {
		nc.Close()
	}
	return err
}

// Two spaces in one process, each on a broker of its own: one of them gives up, which
// the people of the other do not notice, and nothing is left of both in the end.
func TestTwoSpacesOfWhichOneGivesUp(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	alpha, stopAlpha := install(t, dir, "alpha")
	defer stopAlpha()
	beta, stopBeta := install(t, dir, "beta")
	defer stopBeta()
	s := newStage(t)
	list, err := s.app.toServe(serveOptions{config: twoSpaces(t, dir, alpha, beta), standby: true, faults: true})
	if err != nil {
		t.Fatal(err)
	}
	s.keep(list)
	records := s.ready(2)
	for _, name := range []string{"alpha", "beta"} {
		if r := records[name]; r.StateDir != filepath.Join(dir, name, "state") || r.PID != os.Getpid() || r.URL == "" {
			t.Errorf("%s is ready with %+v", name, r)
		}
	}
	left, right := newMachine(t, filepath.Join(dir, "alpha")), newMachine(t, filepath.Join(dir, "beta"))
	for _, m := range []machine{left, right} {
		if err := m.connect(t); err != nil {
			t.Fatalf("%s: %v", m.dir, err)
		}
	}
	over, failures := make(chan struct{}), make(chan []error, 1)
	go func() {
		var failed []error
		for connects := 0; ; connects++ {
			select {
			case <-over:
				if connects == 0 {
					failed = append(failed, errors.New("nobody connected"))
				}
				failures <- failed
				return
			default:
				if err := right.connect(t); err != nil {
					failed = append(failed, err)
				}
			}
		}
	}()
	exhaust(t, records["alpha"])
	s.log.await(t, `"msg":"a space is no longer served","space":"alpha"`)
	if err := right.connect(t); err != nil {
		t.Errorf("when the sibling had gone: %v", err)
	}
	close(over)
	for _, err := range await(t, failures, "who connects") {
		t.Errorf("while the sibling gave up: %v", err)
	}
	if got := runIn(t, "", "--dir", filepath.Join(dir, "alpha"), "status"); got.code != messages.ExitUnavailable {
		t.Errorf("status of what is gone: exit %d, %s%s", got.code, got.out, got.err)
	}
	s.signals <- syscall.SIGTERM
	last, err := s.end()
	if last == nil || !last.Closed || len(last.Errors) == 0 || code(err) != messages.ExitFailed {
		t.Fatalf("exit %d, %v and %+v", code(err), err, last)
	}
	for _, text := range last.Errors {
		if !strings.HasPrefix(text, "alpha: ") {
			t.Errorf("the last line says %q", text)
		}
	}
	for _, c := range last.Connections {
		if !c.Ended {
			t.Errorf("%s has not ended", c.Label)
		}
	}
}

// exhaust kills an actor until its space gives up and its face is gone.
func exhaust(t *testing.T, record service.Record) {
	t.Helper()
	client, err := service.Open(record)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(2 * patience); ; {
		_, err := client.Send(t.Context(), http.MethodPost, "/v1/debug/kill", map[string]string{"actor": "plane/writer", "how": "panic"})
		if errors.Is(err, messages.ServiceAway) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s does not give up: %v", record.Space, err)
		}
	}
}
