package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// process is one `authplane serve`.
type process struct {
	*play
	name       string
	state      string // its directory
	cmd        *exec.Cmd
	lines      chan string   // 16: more than it writes
	ended      chan struct{} // closed when it is gone (capacity 0)
	instance   string
	url        string
	capability string

	mu   sync.Mutex
	talk bytes.Buffer
}

// launch starts a process with a state directory of its own, which knows of the
// given servers. It does not wait for anything.
func (p *play) launch(to []*server, flags ...string) *process {
	p.Helper()
	p.started++
	name := fmt.Sprintf("p%d", p.started)
	dir := p.TempDir()
	config := filepath.Join(dir, "authplane.yaml")
	p.must(os.WriteFile(config, fmt.Appendf(nil, "space: %s\nnats_url: %s\nstate_dir: nowhere\nsecrets_dir: %s\nsentinel_creds: %s\nreplicas: %d\n",
		spaceName, urls(to...), p.made.SecretsDir, p.made.SentinelCreds, size), 0o600))
	q := &process{play: p, name: name, state: filepath.Join(dir, "state"), lines: make(chan string, 16), ended: make(chan struct{})}
	q.cmd = exec.Command(filepath.Join(p.programs, "authplane"),
		append([]string{"serve", "--json", "--config", config, "--state-dir", q.state}, flags...)...)
	q.cmd.Stderr = q
	out, err := q.cmd.StdoutPipe()
	p.must(err)
	p.must(q.cmd.Start())
	go q.read(out) // ends with the program's output; waited for through ended
	p.Cleanup(func() {
		_ = q.cmd.Process.Kill()
		<-q.ended
		if p.Failed() {
			p.Logf("%s (%s) said:\n%s", q.name, q.instance, q.said())
		}
	})
	return q
}

// serve starts a process and waits until it serves.
func (p *play) serve(to []*server, flags ...string) *process {
	p.Helper()
	q := p.launch(to, flags...)
	q.ready()
	return q
}

func (q *process) read(out io.Reader) {
	defer close(q.ended)
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		q.lines <- scanner.Text()
	}
	close(q.lines)
	_ = q.cmd.Wait()
}

func (q *process) Write(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.talk.Write(b)
}

// said is what the process said so far.
func (q *process) said() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.talk.String()
}

// ready waits for the first line, which says where the process is reached.
func (q *process) ready() {
	q.Helper()
	var first struct {
		URL            string `json:"url"`
		CapabilityFile string `json:"capability_file"`
	}
	select {
	case line, more := <-q.lines:
		if !more {
			q.Fatalf("%s ended:\n%s", q.name, q.said())
		}
		q.must(json.Unmarshal([]byte(line), &first))
	case <-time.After(patience):
		q.Fatalf("%s does not serve:\n%s", q.name, q.said())
	}
	q.url, q.capability, q.instance = first.URL, q.file(first.CapabilityFile), q.file(filepath.Join(q.state, "instance"))
}

func (q *process) file(path string) string {
	q.Helper()
	raw, err := os.ReadFile(path)
	q.must(err)
	return strings.TrimSpace(string(raw))
}

// signal sends a signal.
func (q *process) signal(s syscall.Signal) {
	q.Helper()
	q.must(q.cmd.Process.Signal(s))
}

// kill ends the process at once.
func (q *process) kill() {
	q.Helper()
	q.signal(syscall.SIGKILL)
	<-q.ended
}

// end waits for the end, and returns the exit code and the lines not yet read.
func (q *process) end() (code int, rest []string) {
	q.Helper()
	late := time.After(patience)
	for {
		select {
		case line, more := <-q.lines:
			if more {
				rest = append(rest, line)
				continue
			}
			<-q.ended
			return q.cmd.ProcessState.ExitCode(), rest
		case <-late:
			q.Fatalf("%s does not end:\n%s", q.name, q.said())
		}
	}
}

// close asks the process to end, which it does as it should.
func (q *process) close() {
	q.Helper()
	q.signal(syscall.SIGTERM)
	code, rest := q.end()
	var last struct {
		Closed      bool
		Connections []struct {
			Label string
			Ended bool
		}
		Errors []string
	}
	if len(rest) != 1 || json.Unmarshal([]byte(rest[0]), &last) != nil || code != 0 || !last.Closed || len(last.Errors) > 0 {
		q.Fatalf("%s: exit %d, lines %q", q.name, code, rest)
	}
	for _, c := range last.Connections {
		if !c.Ended {
			q.Errorf("%s: %s has not ended", q.name, c.Label)
		}
	}
}

// call asks the loopback face. The error is that nobody answered whole, or that the
// answer was not one of the wanted statuses.
func (q *process) call(method, path string, body, into any, want ...int) (status int, err error) {
	content, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequest(method, q.url+path, bytes.NewReader(content))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+q.capability)
	client := &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	for _, w := range want {
		if answer.StatusCode == w {
			if into == nil {
				return answer.StatusCode, nil
			}
			return answer.StatusCode, json.Unmarshal(raw, into)
		}
	}
	return answer.StatusCode, fmt.Errorf("%s %s: %d %s", method, path, answer.StatusCode, raw)
}

// plane is how the process says that it stands to the plane.
func (q *process) plane() (messages.PlaneStatus, error) {
	var status messages.Status
	_, err := q.call(http.MethodGet, "/v1/status", nil, &status, http.StatusOK)
	return status.Plane, err
}

// holds waits until the process holds the plane, and returns how it says so.
func (q *process) holds() (s messages.PlaneStatus) {
	q.Helper()
	q.eventually(q.name+" holds the plane", func() (err error) {
		s, err = q.plane()
		if err == nil && (s.State != messages.PlaneActive || !s.HeldByUs || s.Holder != q.instance) {
			err = fmt.Errorf("%+v", s)
		}
		return err
	})
	return s
}

// waits waits until the process stands by because of a holder, and its words hold all
// of the given ones.
func (q *process) waits(holder *process, words ...string) (s messages.PlaneStatus) {
	q.Helper()
	q.eventually(q.name+" waits", func() (err error) {
		if s, err = q.plane(); err != nil {
			return err
		}
		return waiting(s, holder, words...)
	})
	return s
}

// knows waits until the process has certainly heard from another one, which says four
// times a second that it lives.
func (q *process) knows(other *process) {
	q.Helper()
	q.always(q.name+" and "+other.name+" serve", time.Second, func() error {
		_, err := q.plane()
		if err == nil {
			_, err = other.plane()
		}
		return err
	})
}

// waiting reports whether a status is that of a standby, because of a holder, with
// these words for it.
func waiting(s messages.PlaneStatus, holder *process, words ...string) error {
	if s.State != messages.PlaneStandby || s.HeldByUs || s.Holder != holder.instance || s.WaitingFor == "" || s.Next == "" {
		return fmt.Errorf("%+v", s)
	}
	for _, w := range words {
		if !strings.Contains(s.WaitingFor, w) {
			return fmt.Errorf("%q is not in %q", w, s.WaitingFor)
		}
	}
	return nil
}

// counter reads one of the process's counters; what was never counted is 0.
func (q *process) counter(name string, labels ...string) (sum float64, err error) {
	answer, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Get(q.url + "/metrics")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	scanner := bufio.NewScanner(answer.Body)
next:
	for scanner.Scan() {
		line := scanner.Text()
		if !strings.HasPrefix(line, name+"{") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(line, l) {
				continue next
			}
		}
		var value float64
		if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &value); err != nil {
			return 0, err
		}
		sum += value
	}
	return sum, scanner.Err()
}
