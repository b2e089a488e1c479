package openers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take here, far above what it should take.
const patience = 2 * time.Minute

// process is one authplane that was asked not to stand by.
type process struct {
	*testing.T
	cmd   *exec.Cmd
	talk  *talk
	ready chan struct{} // closed when it says that it is ready
	ended chan struct{} // closed when it has ended
}

func start(t *testing.T, config, state string) *process {
	t.Helper()
	p := &process{T: t, talk: &talk{}, ready: make(chan struct{}), ended: make(chan struct{})}
	p.cmd = exec.Command(program, "serve", "--json", "--no-standby", "--config", config, "--state-dir", state)
	p.cmd.Stderr = p.talk
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the program
		defer close(p.ended)
		lines := bufio.NewScanner(out)
		for first := true; lines.Scan(); first = false {
			var said struct{ PID int }
			if first && json.Unmarshal(lines.Bytes(), &said) == nil && said.PID == p.cmd.Process.Pid {
				close(p.ready)
			}
		}
		_ = p.cmd.Wait() // how it ended is told by its state
	}()
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	return p
}

// settle waits until it is ready or has ended, and says which.
func (p *process) settle() (ready bool) {
	p.Helper()
	select {
	case <-p.ready:
		return true
	case <-p.ended:
		return false
	case <-time.After(patience):
		p.Fatalf("neither ready nor ended:\n%s", p.talk)
		return false
	}
}

// end ends it by a signal and waits.
func (p *process) end(s syscall.Signal) {
	p.Helper()
	_ = p.cmd.Process.Signal(s) // fails only when it has ended
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.Errorf("does not end:\n%s", p.talk)
	}
}

// talk is what a process says to people.
type talk struct {
	mu   sync.Mutex
	said bytes.Buffer
}

func (t *talk) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said.Write(b)
}

func (t *talk) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said.String()
}
