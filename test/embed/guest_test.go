package embed_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestGuest has a program start a space, use it and close it. What the program
// prints, what becomes of its files and how it ends are its own affair all along.
func TestGuest(t *testing.T) {
	p := begin(t)
	before := p.files()
	p.goOn()
	printed := p.hear("begun").Printed
	p.hear("start without a broker")
	p.hear("open")
	if _, err := os.Stat(filepath.Join(p.dir, "state", "service.json")); err != nil {
		t.Errorf("the space does not keep its state where it was told: %v", err)
	}
	p.tell("close")
	p.hear("closed")
	p.hear("left")
	p.tell("end")
	if err := p.ended(); err == nil || p.cmd.ProcessState.ExitCode() != itsOwnCode {
		t.Errorf("the program did not end as it wanted: %v", err)
	}
	if after := p.files(); !maps.Equal(before, after) {
		t.Errorf("files before: %v\nafter: %v", before, after)
	}
	p.silent(printed)
}

// TestSignalsAreThePrograms: with a space open, a signal does to the program what
// it would do without.
func TestSignalsAreThePrograms(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run("it dies of "+s.String(), func(t *testing.T) {
			p := begin(t)
			p.goOn()
			printed := p.hear("begun").Printed
			p.hear("start without a broker")
			p.hear("open")
			p.signal(s)
			var exit *exec.ExitError
			if err := p.ended(); !errors.As(err, &exit) {
				t.Fatalf("the program ended with %v", err)
			}
			if status := exit.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != s {
				t.Errorf("the program ended with %v", exit)
			}
			p.silent(printed)
		})
	}
	t.Run("it hears the one it listens for", func(t *testing.T) {
		p := begin(t, listensEnv+"=1")
		p.goOn()
		printed := p.hear("begun").Printed
		p.hear("start without a broker")
		p.hear("open")
		p.signal(syscall.SIGTERM)
		p.hear("heard") // and the space is ready all the same
		p.tell("close")
		p.hear("closed")
		p.hear("left")
		p.tell("end")
		if err := p.ended(); err == nil || p.cmd.ProcessState.ExitCode() != itsOwnCode {
			t.Errorf("the program did not end as it wanted: %v", err)
		}
		p.silent(printed)
	})
}

// running is the program as its test sees it.
type running struct {
	testing.TB
	dir            string
	cmd            *exec.Cmd
	stdin          io.WriteCloser
	stdout, stderr *os.File
	theirs, ours   *os.File
	words          *json.Decoder
}

// begin makes the program's places and an installation with a broker. It is not
// running yet.
func begin(t *testing.T, env ...string) *running {
	t.Helper()
	p := &running{TB: t, dir: t.TempDir()}
	i, stop, err := installIn(p.dir)
	p.must(err)
	t.Cleanup(stop)
	text, err := json.Marshal(i)
	p.must(err)
	self, err := os.Executable()
	p.must(err)
	p.cmd = exec.Command(self)
	p.cmd.Dir = p.place("cwd")
	p.cmd.Env = append([]string{
		"HOME=" + p.place("home"), "TMPDIR=" + p.place("tmp"), "XDG_CONFIG_HOME=" + p.place("config"),
		"XDG_STATE_HOME=" + p.place("xdg-state"), "GOCOVERDIR=" + t.TempDir(), programEnv + "=" + string(text),
	}, env...)
	p.stdout, p.stderr = p.output(), p.output()
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.ours, p.theirs, err = os.Pipe()
	p.must(err)
	p.cmd.ExtraFiles = []*os.File{p.theirs}
	p.words = json.NewDecoder(bufio.NewReader(p.ours))
	p.stdin, err = p.cmd.StdinPipe()
	p.must(err)
	return p
}

func (p *running) place(name string) string {
	path := filepath.Join(p.dir, name)
	p.must(os.Mkdir(path, 0o700))
	return path
}

// output is where the program's output goes: a file, so that it knows its length.
func (p *running) output() *os.File {
	f, err := os.Create(filepath.Join(p.TempDir(), "output"))
	p.must(err)
	p.Cleanup(func() { _ = f.Close() })
	return f
}

// goOn starts the program.
func (p *running) goOn() {
	p.Helper()
	p.must(p.cmd.Start())
	p.must(p.theirs.Close())
	p.must(p.ours.SetReadDeadline(time.Now().Add(patience)))
	p.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails only when it has ended
		_ = p.cmd.Wait()
		_ = p.ours.Close()
	})
}

// hear waits for the program to say that a step went well.
func (p *running) hear(step string) said {
	p.Helper()
	var s said
	if err := p.words.Decode(&s); err != nil {
		p.Fatalf("waiting for %q: %v\n%s", step, err, p.printed(p.stderr))
	}
	if s.Step != step || s.Problem != "" {
		p.Fatalf("waiting for %q: %+v", step, s)
	}
	return s
}

func (p *running) tell(line string) {
	p.Helper()
	_, err := io.WriteString(p.stdin, line+"\n")
	p.must(err)
}

func (p *running) signal(s syscall.Signal) {
	p.Helper()
	p.must(p.cmd.Process.Signal(s))
}

// ended waits for the program's end.
func (p *running) ended() error {
	limit := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer limit.Stop()
	return p.cmd.Wait()
}

// silent checks that nothing was printed after the first bytes of standard error,
// which are the actor system's own greeting.
func (p *running) silent(greeting int64) {
	p.Helper()
	if text := p.printed(p.stdout); text != "" {
		p.Errorf("printed to standard output: %s", text)
	}
	if text := p.printed(p.stderr); int64(len(text)) != greeting {
		p.Errorf("printed to standard error: %s", text[greeting:])
	}
}

func (p *running) printed(f *os.File) string {
	p.Helper()
	text, err := os.ReadFile(f.Name())
	p.must(err)
	return string(text)
}

// files describes everything the program could reach with its environment, but for
// the state directory and what the broker stores.
func (p *running) files() map[string]string {
	p.Helper()
	found := map[string]string{}
	p.must(filepath.WalkDir(p.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, p.dir)
		if name == "/state" || name == "/installation/jetstream" {
			return filepath.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found[name] = info.Mode().String()
		if entry.Type().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[name] += fmt.Sprintf(" %x", sha256.Sum256(content)) // keys among them
		}
		return nil
	}))
	if len(found) < 10 {
		p.Fatalf("there is hardly anything to look at: %v", found)
	}
	return found
}

func (p *running) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}
