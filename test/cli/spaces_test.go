package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// installed is one of several spaces, and how its server is started.
type installed struct {
	made
	dir, address string
}

// several makes spaces of those names and one configuration that lists them, with
// everything of each in a directory of its name.
func several(t *testing.T, names ...string) (config string, spaces []installed) {
	t.Helper()
	dir, body := t.TempDir(), "spaces:\n"
	for _, name := range names {
		s := installed{dir: filepath.Join(dir, name), address: freeAddress(t)}
		must(t, &s.made, "init", "--json", "--dir", s.dir, "--space", name, "--nats-url", "nats://"+s.address)
		body += fmt.Sprintf("- space: %[1]s\n  nats_url: nats://%[2]s\n  state_dir: %[1]s/state\n  secrets_dir: %[1]s/secrets\n  sentinel_creds: %[1]s/sentinel.creds\n", name, s.address)
		spaces = append(spaces, s)
	}
	config = filepath.Join(dir, "authplane.yaml")
	if err := os.WriteFile(config, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return config, spaces
}

// broker starts the server of a space.
func (s installed) broker(t *testing.T) *process {
	t.Helper()
	return start(t, "nats-server", "-c", s.ServerConfig)
}

// state asks a space how it is; empty when it does not answer.
func (s installed) state(t *testing.T) string {
	t.Helper()
	got := authplane(t, "status", "--json", "--dir", s.dir)
	var status struct{ State string }
	if got.code != 0 || json.Unmarshal([]byte(got.out), &status) != nil {
		return ""
	}
	return status.State
}

// becomes waits until a space is in a state.
func (s installed) becomes(t *testing.T, state string) {
	t.Helper()
	for late := time.Now().Add(patience); s.state(t) != state; {
		if time.Now().After(late) {
			t.Fatalf("%s is %q, not %q", s.dir, s.state(t), state)
		}
	}
}

// goes waits until a space has closed.
func (s installed) goes(t *testing.T) {
	t.Helper()
	for late := time.Now().Add(patience); !strings.Contains(authplane(t, "status", "--dir", s.dir).err, "nothing runs from"); {
		if time.Now().After(late) {
			t.Fatalf("%s does not close", s.dir)
		}
	}
}

// people grants somebody in a space; what it returns has them log in and connect once.
func (s installed) people(t *testing.T) func() error {
	t.Helper()
	const owner = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa"
	must(t, nil, "grant", "--dir", s.dir, owner+"/host", "--publish", "work.>")
	secret, file := filepath.Join(t.TempDir(), "secret"), filepath.Join(t.TempDir(), "robot.json")
	must(t, nil, "grant", "--dir", s.dir, owner+"/robot", "--managed", "--parent", owner+"/host", "--publish", "work.done", "--secret-file", secret)
	return func() error {
		got := authplane(t, "context", "--dir", s.dir, owner+"/robot", "--actor-token-file", secret, "--out", file)
		if got.code != 0 {
			return fmt.Errorf("context: exit %d, %s", got.code, got.err)
		}
		return connect(t, file)
	}
}

// come has somebody connect all the time; what it returns ends that and tells how
// often it went well, and what went wrong.
func come(t *testing.T, connect func() error) (end func() (well int, wrong []error)) {
	over, done := make(chan struct{}), make(chan struct{})
	well, wrong := 0, []error(nil)
	go func() { // ends when it is over
		defer close(done)
		for {
			select {
			case <-over:
				return
			default:
			}
			if err := connect(); err != nil {
				wrong = append(wrong, err)
			} else {
				well++
			}
		}
	}()
	end = sync.OnceValues(func() (int, []error) { close(over); <-done; return well, wrong })
	t.Cleanup(func() { end() })
	return end
}

// Two spaces in one process, on servers of their own. Whatever happens to the first,
// the second is not held up at its start and does not miss a connect.
func TestTwoSpacesInOneProcess(t *testing.T) {
	config, spaces := several(t, "alpha", "beta")
	alpha, beta := spaces[0], spaces[1]
	beta.broker(t)
	p := start(t, "authplane", "serve", "--json", "--fault-injection", "--config", config)
	if r := p.ready(); r.Space != "beta" || r.NATSURL != "nats://"+beta.address || r.StateDir != filepath.Join(beta.dir, "state") {
		t.Errorf("the first that is ready is %+v", r)
	}
	if got := authplane(t, "status", "--dir", alpha.dir); got.code != 4 || !strings.Contains(got.err, "is starting, or waits for its broker") {
		t.Errorf("status of the one that waits: exit %d, %s", got.code, got.err)
	}
	end := come(t, beta.people(t))

	first := alpha.broker(t)
	r := p.ready()
	if r.Space != "alpha" || r.NATSURL != "nats://"+alpha.address {
		t.Errorf("the other one is %+v", r)
	}
	if err := alpha.people(t)(); err != nil {
		t.Error(err)
	}

	first.signal(syscall.SIGKILL)
	first.wait()
	alpha.becomes(t, "unavailable")
	if state := beta.state(t); state != "ready" {
		t.Errorf("without the sibling's server it is %q", state)
	}
	alpha.broker(t)
	alpha.becomes(t, "ready")

	capability := read(t, r.CapabilityFile)
	for late := time.Now().Add(patience); killBy(t, r, capability, "plane/writer") != 0; {
		if time.Now().After(late) {
			t.Fatalf("it does not give up:\n%s", p.said())
		}
		must(t, nil, "status", "--dir", beta.dir)
	}
	p.await(`"msg":"a space is no longer served","space":"alpha","closed":true`)
	alpha.goes(t)
	if state := beta.state(t); state != "ready" {
		t.Errorf("without its sibling it is %q", state)
	}
	if well, wrong := end(); well == 0 || len(wrong) > 0 {
		t.Errorf("%d connects went well, and %v", well, wrong)
	}

	p.signal(syscall.SIGTERM)
	code, rest := p.wait()
	if code != 1 || len(rest) != 1 {
		t.Fatalf("exit %d, lines %q\n%s", code, rest, p.said())
	}
	var e ending
	if err := json.Unmarshal([]byte(rest[0]), &e); err != nil || !e.Closed || len(e.Errors) == 0 {
		t.Fatalf("%v in %s", err, rest[0])
	}
	for _, text := range e.Errors {
		if !strings.HasPrefix(text, "alpha: ") {
			t.Errorf("the last line says %q", text)
		}
	}
}

// A second process beside the first has its states in a directory of its own, one for
// each space; both close as one would.
func TestSeveralSpacesWithAStateDirectory(t *testing.T) {
	config, spaces := several(t, "alpha", "beta")
	for _, s := range spaces {
		s.broker(t)
	}
	p := start(t, "authplane", "serve", "--json", "--config", config)
	p.ready()
	p.ready()
	state := t.TempDir()
	beside := start(t, "authplane", "serve", "--json", "--config", config, "--state-dir", state)
	for range spaces {
		if r := beside.ready(); r.StateDir != filepath.Join(state, r.Space) {
			t.Errorf("got %+v", r)
		}
	}
	for _, name := range []string{"alpha", "beta"} {
		var status struct {
			Space string
			Plane struct {
				HeldByUs bool `json:"held_by_us"`
			}
		}
		if must(t, &status, "status", "--json", "--dir", filepath.Join(state, name)); status.Space != name || status.Plane.HeldByUs {
			t.Errorf("got %+v", status)
		}
	}
	if got := authplane(t, "serve", "--config", config); got.code != 3 || strings.Count(got.err, "belongs to a running service") < 2 {
		t.Errorf("a third one in the directories of the first: exit %d, %s", got.code, got.err)
	}
	p.close(syscall.SIGTERM)
	if e := beside.close(syscall.SIGTERM); len(e.Connections) < 6 {
		t.Errorf("an inventory of %d", len(e.Connections))
	}
}

// One space cannot close, its server being gone for good: its sibling has closed
// meanwhile, and the last line blames the one alone.
func TestOneOfTwoSpacesCannotClose(t *testing.T) {
	config, spaces := several(t, "alpha", "beta")
	broker := spaces[0].broker(t)
	spaces[1].broker(t)
	p := start(t, "authplane", "serve", "--json", "--config", config)
	p.ready()
	p.ready()
	broker.signal(syscall.SIGKILL)
	broker.wait()
	spaces[0].becomes(t, "unavailable")
	p.signal(syscall.SIGTERM)
	spaces[1].goes(t)
	p.signal(syscall.SIGTERM)
	code, rest := p.wait()
	var e ending
	if code != 1 || len(rest) != 1 || json.Unmarshal([]byte(rest[0]), &e) != nil || e.Closed || len(e.Errors) == 0 {
		t.Fatalf("exit %d, lines %q\n%s", code, rest, p.said())
	}
	for _, text := range e.Errors {
		if !strings.HasPrefix(text, "alpha: ") {
			t.Errorf("the last line says %q", text)
		}
	}
	for _, c := range e.Connections {
		if strings.HasSuffix(c.Label, ":beta") && !c.Ended {
			t.Errorf("%s has not ended", c.Label)
		}
	}
}
