package natsdtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/trust"
)

// Build builds the nats-server this module depends on and returns its path. It
// takes seconds; build once and start as often as needed.
func Build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nats-server")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		t.Fatalf("build nats-server: %v\n%s", err, out)
	}
	return path
}

// Process is a nats-server in a process of its own.
type Process struct {
	cmd *exec.Cmd
	url string
	out *output
	// ended is closed when the process is gone (capacity 0).
	ended chan struct{}
}

// Run starts the nats-server at path on the chain in dir and returns once it
// listens. It is killed when the test ends, if it still runs then.
func Run(t testing.TB, path, dir string, args ...string) *Process {
	t.Helper()
	ports := t.TempDir()
	p := &Process{out: &output{}, ended: make(chan struct{})}
	p.cmd = exec.Command(path, append([]string{"-c", trust.ServerConf(dir), "--ports_file_dir", ports}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start nats-server: %v", err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is told by what it said
	}()
	t.Cleanup(func() { p.Kill(t) })
	p.awaitPorts(t, ports)
	return p
}

// awaitPorts looks for the file in which the server says where it listens.
func (p *Process) awaitPorts(t testing.TB, dir string) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	file := filepath.Join(dir, fmt.Sprintf("%s_%d.ports", filepath.Base(p.cmd.Path), p.cmd.Process.Pid))
	for {
		var said struct {
			Nats []string `json:"nats"`
		}
		if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &said) == nil && len(said.Nats) > 0 {
			p.url = said.Nats[0]
			return
		}
		select {
		case <-tick.C:
		case <-p.ended:
			t.Fatalf("nats-server ended while starting:\n%s", p.out)
		case <-deadline.C:
			t.Fatalf("nats-server does not say where it listens:\n%s", p.out)
		}
	}
}

// URL is where clients reach it.
func (p *Process) URL() string { return p.url }

// Pause stops the process where it stands, without a word to anybody.
func (p *Process) Pause(t testing.TB) { p.signal(t, syscall.SIGSTOP) }

// Resume lets it go on.
func (p *Process) Resume(t testing.TB) { p.signal(t, syscall.SIGCONT) }

// Stop asks it to end and waits.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	p.await(t)
}

// Kill ends it at once and waits. Killing what has ended is allowed.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	_ = p.cmd.Process.Kill() // fails only when it has ended
	p.await(t)
}

func (p *Process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Errorf("signal %v to nats-server: %v", s, err)
	}
}

func (p *Process) await(t testing.TB) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-p.ended:
	case <-limit.C:
		t.Errorf("nats-server does not end")
	}
}

// output collects what the process says.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
