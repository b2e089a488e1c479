package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// freeAddress is one that nobody listens on now, and that nobody is given who asks for
// any port: those are from another range.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			_ = listener.Close() // it is free again
			return address
		}
	}
	t.Fatal("no address is free")
	return ""
}

type made struct {
	ConfigFile    string `json:"config_file"`
	ServerConfig  string `json:"server_config"`
	SentinelCreds string `json:"sentinel_creds"`
	SecretsDir    string `json:"secrets_dir"`
	OfflineDir    string `json:"offline_dir"`
}

// A space beside a NATS server that is a process of its own.
func TestServe(t *testing.T) {
	dir, address := filepath.Join(t.TempDir(), "acme"), freeAddress(t)
	var m made
	must(t, &m, "init", "--json", "--dir", dir, "--space", "acme", "--nats-url", "nats://"+address)
	for _, path := range []string{m.ConfigFile, m.ServerConfig, m.SentinelCreds, m.SecretsDir, m.OfflineDir} {
		if _, err := os.Stat(path); err != nil || !filepath.IsAbs(path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := authplane(t, "init", "--dir", dir, "--space", "acme"); got.code != 3 {
		t.Errorf("a second init: exit %d, %s", got.code, got.err)
	}

	t.Run("it waits for the broker, and can be called off", func(t *testing.T) {
		p := start(t, "authplane", "serve", "--json", "--config", m.ConfigFile, "--state-dir", filepath.Join(dir, "other"))
		p.await("actor restarts")
		got := authplane(t, "status", "--dir", filepath.Join(dir, "other"))
		if got.code != 4 || !strings.Contains(got.err, "is starting, or waits for its broker") {
			t.Errorf("status meanwhile: exit %d, %s", got.code, got.err)
		}
		if log := p.said(); !regexp.MustCompile(`"in":"[0-9.]+m?s","restarts":[0-9]+,"error":"[^"]`).MatchString(log) {
			t.Errorf("neither why nor in how long:\n%s", log)
		}
		p.close(syscall.SIGTERM)
	})

	p := start(t, "authplane", "serve", "--json", "--config", m.ConfigFile)
	broker := start(t, "nats-server", "-c", m.ServerConfig)
	r := p.ready()
	if r.Space != "acme" || r.NATSURL != "nats://"+address || r.IDPIssuer != "" || r.StateDir != filepath.Join(dir, "state") {
		t.Errorf("got %+v", r)
	}
	var status struct{ State string }
	if must(t, &status, "status", "--json", "--dir", dir); status.State != "ready" {
		t.Errorf("status %+v", status)
	}
	t.Run("machines work without an identity provider", func(t *testing.T) {
		const owner = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa"
		must(t, nil, "grant", "--dir", dir, "--owner", owner, "--actor", "host", "--publish", "work.>")
		var robot struct {
			Token string `json:"actor_token"`
		}
		must(t, &robot, "grant", "--json", "--dir", dir, "--owner", owner, "--actor", "robot", "--managed", "--parent", owner+"/host", "--publish", "work.done")
		secret := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(secret, []byte(robot.Token), 0o600); err != nil {
			t.Fatal(err)
		}
		context := filepath.Join(t.TempDir(), "robot.json")
		must(t, nil, "context", "--dir", dir, "--owner", owner, "--actor", "robot", "--actor-token-file", secret, "--out", context)
		if err := connect(t, context); err != nil {
			t.Error(err)
		}
		if got := authplane(t, "token", "--dir", dir, "--sub", "alice", "--actor", "laptop"); got.code == 0 {
			t.Error("a person logged in where there is no provider")
		}
	})
	p.close(syscall.SIGTERM)
	broker.signal(syscall.SIGTERM)
	broker.wait()
}

// A close that cannot finish, here since the broker no longer answers, exits 1 past
// its deadline and says what is left; a second signal brings the deadline near.
func TestASecondSignalHurries(t *testing.T) {
	dir, address := t.TempDir(), freeAddress(t)
	var m made
	must(t, &m, "init", "--json", "--dir", dir, "--space", "acme", "--nats-url", "nats://"+address)
	broker := start(t, "nats-server", "-c", m.ServerConfig)
	p := start(t, "authplane", "serve", "--json", "--config", m.ConfigFile)
	p.ready()
	broker.signal(syscall.SIGSTOP)
	defer broker.signal(syscall.SIGCONT)
	began := time.Now()
	p.signal(syscall.SIGTERM)
	p.await("closing")
	p.signal(syscall.SIGTERM)
	code, rest := p.wait()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
	if len(rest) != 1 {
		t.Fatalf("exit %d, lines %q\n%s", code, rest, p.said())
	}
	var e ending
	if err := json.Unmarshal([]byte(rest[0]), &e); err != nil {
		t.Fatal(err)
	}
	if code != 1 || e.Closed || len(e.Errors) == 0 || len(e.Connections) == 0 {
		t.Errorf("exit %d and %s", code, rest[0])
	}
}

func TestWhatIsWrongWithAConfigurationIsListedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "authplane.yaml")
	if err := os.WriteFile(path, []byte("space: acme\nnats_urls: x\nreplicas: many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := authplane(t, "serve", "--json", "--config", path)
	if got.code != 2 || got.out != "" {
		t.Errorf("exit %d, out %q", got.code, got.out)
	}
	for _, want := range []string{"line 2: nats_urls", "line 3: replicas", "nats_url: is missing", "state_dir: is missing"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("%q is not in:\n%s", want, got.err)
		}
	}
}

func TestInitRefusesWhatCouldNotBeServed(t *testing.T) {
	for _, args := range [][]string{
		{"--space", "Not A Space"}, {"--space", "acme", "--replicas", "2"}, {"--space", "acme", "--idp", "ftp://x"},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		got := authplane(t, append([]string{"init", "--dir", dir}, args...)...)
		if got.code != 2 {
			t.Errorf("%v: exit %d, %s", args, got.code, got.err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%v: something was written", args)
		}
	}
}

// kill asks for the death of an actor and returns the HTTP status.
func kill(t *testing.T, r record, path string) int {
	t.Helper()
	return killBy(t, r, read(t, r.CapabilityFile), path)
}

// killBy does so with a capability that was read; it returns 0 when nobody answers.
func killBy(t *testing.T, r record, capability, path string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	body, err := json.Marshal(map[string]string{"actor": path, "how": "panic"})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/v1/debug/kill", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(capability))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}
