package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take here. It is far above what it should take,
// so that a busy machine fails no test.
const patience = 60 * time.Second

// result is what a command that ended left.
type result struct {
	code     int
	out, err string
}

// authplane runs one command to its end.
func authplane(t *testing.T, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "authplane"), args...)
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), talk.String()}
}

// must runs a command that has to succeed, and decodes its JSON.
func must(t *testing.T, into any, args ...string) result {
	t.Helper()
	got := authplane(t, args...)
	if got.code != 0 {
		t.Fatalf("authplane %s: exit %d\n%s%s", strings.Join(args, " "), got.code, got.out, got.err)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(got.out), into); err != nil {
			t.Fatalf("authplane %s: %v in %q", strings.Join(args, " "), err, got.out)
		}
	}
	return got
}

// process is a program that runs beside the test.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // 64: more lines than any program here writes before it is read
	ended chan struct{}

	mu    sync.Mutex
	talk  bytes.Buffer
	spoke chan struct{} // 1: set when something was said since it was taken
}

// start starts a program; it is killed at the end of the test if it still runs.
func start(t *testing.T, program string, args ...string) *process {
	t.Helper()
	return startIn(t, "", filepath.Join(bin, program), args...)
}

// startIn starts the program at a path in a directory.
func startIn(t *testing.T, dir, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(path, args...),
		lines: make(chan string, 64), ended: make(chan struct{}), spoke: make(chan struct{}, 1)}
	p.cmd.Dir = dir
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = writer(func(b []byte) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.talk.Write(b)
		select {
		case p.spoke <- struct{}{}:
		default:
		}
	})
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(out) // ends with the program's output
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

func (p *process) read(out io.Reader) {
	defer close(p.ended)
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		p.lines <- scanner.Text()
	}
	close(p.lines)
	_ = p.cmd.Wait()
}

// line waits for the next line of output.
func (p *process) line() string {
	p.t.Helper()
	select {
	case line, more := <-p.lines:
		if !more {
			p.t.Fatalf("ended without a further line:\n%s", p.said())
		}
		return line
	case <-time.After(patience):
		p.t.Fatalf("no line:\n%s", p.said())
	}
	return ""
}

// signal sends a signal.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits for the end and returns the exit code and the lines not yet read.
func (p *process) wait() (code int, rest []string) {
	p.t.Helper()
	late := time.After(patience)
	for {
		select {
		case line, more := <-p.lines:
			if more {
				rest = append(rest, line)
				continue
			}
			select {
			case <-p.ended:
			case <-late:
				p.t.Fatalf("did not end:\n%s", p.said())
			}
			return p.cmd.ProcessState.ExitCode(), rest
		case <-late:
			p.t.Fatalf("did not end:\n%s", p.said())
		}
	}
}

// said is what the program said on its error stream so far.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.talk.String()
}

// await waits until the program has said something on its error stream.
func (p *process) await(text string) {
	p.t.Helper()
	late := time.After(patience)
	for !strings.Contains(p.said(), text) {
		select {
		case <-p.spoke:
		case <-late:
			p.t.Fatalf("%q was not said:\n%s", text, p.said())
		}
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// record is the first line of dev and serve.
type record struct {
	Space          string `json:"space"`
	NATSURL        string `json:"nats_url"`
	URL            string `json:"url"`
	PublicURL      string `json:"public_url"`
	CapabilityFile string `json:"capability_file"`
	SentinelCreds  string `json:"sentinel_creds"`
	IDPIssuer      string `json:"idp_issuer"`
	StateDir       string `json:"state_dir"`
	PID            int    `json:"pid"`
}

// ready reads the first line, which has exactly the documented fields.
func (p *process) ready() record {
	p.t.Helper()
	line := p.line()
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.DisallowUnknownFields()
	var r record
	if err := decoder.Decode(&r); err != nil {
		p.t.Fatalf("first line: %v in %s", err, line)
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil || len(fields) != 9 {
		p.t.Fatalf("first line has %d fields, %v: %s", len(fields), err, line)
	}
	if r.PID != p.cmd.Process.Pid {
		p.t.Errorf("pid %d, and it is %d", r.PID, p.cmd.Process.Pid)
	}
	return r
}

// ending is the last line of dev and serve.
type ending struct {
	Closed      bool `json:"closed"`
	Connections []struct {
		Label string `json:"label"`
		Ended bool   `json:"ended"`
	} `json:"connections"`
	Errors []string `json:"errors"`
}

// close ends the program with a signal and checks that it ends as it should: exit 0
// and one more line, which says that everything has ended.
func (p *process) close(s syscall.Signal) ending {
	p.t.Helper()
	p.signal(s)
	code, rest := p.wait()
	if code != 0 || len(rest) != 1 {
		p.t.Fatalf("exit %d, lines %q\n%s", code, rest, p.said())
	}
	decoder := json.NewDecoder(strings.NewReader(rest[0]))
	decoder.DisallowUnknownFields()
	var e ending
	if err := decoder.Decode(&e); err != nil {
		p.t.Fatalf("last line: %v in %s", err, rest[0])
	}
	if !e.Closed || e.Connections == nil || e.Errors == nil || len(e.Errors) > 0 {
		p.t.Errorf("last line: %s", rest[0])
	}
	for _, c := range e.Connections {
		if !c.Ended || c.Label == "" {
			p.t.Errorf("connection %+v", c)
		}
	}
	return e
}

// dev starts a development space in dir and waits until it is ready.
func dev(t *testing.T, dir string, args ...string) (*process, record) {
	t.Helper()
	p := start(t, "authplane", append([]string{"dev", "--json", "--dir", dir}, args...)...)
	return p, p.ready()
}

func read(t *testing.T, path string) string {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
