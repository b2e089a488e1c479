package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/pprof"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/devbroker"
)

// This binary is also the processes it needs: roleEnv says which one, argumentEnv
// with what. Each says one line of JSON when it is ready, and ends when its
// standard input does.
const (
	roleEnv     = "AUTHPLANE_BENCH_ROLE"
	argumentEnv = "AUTHPLANE_BENCH_ARGUMENT"
	profileEnv  = "BENCH_BROKER_PROFILE"
)

// roles is what this binary can be.
var roles = map[string]func(argument string) error{"broker": beBroker, "idle": beIdle, "clients": beClients}

func TestMain(m *testing.M) {
	role, asked := roles[os.Getenv(roleEnv)]
	if !asked {
		goleak.VerifyTestMain(m)
		return
	}
	if err := role(os.Getenv(argumentEnv)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// ready says a line and waits for the end of standard input.
func ready(line any) error {
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

type brokerReady struct{ URL string }

// beBroker runs a broker on the trust chain in dir.
func beBroker(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if path := os.Getenv(profileEnv); path != "" {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer func() { pprof.StopCPUProfile(); _ = file.Close() }()
	}
	broker, err := devbroker.New(devbroker.Config{Dir: dir})
	if err != nil {
		return err
	}
	run, err := broker.Start(ctx)
	if err != nil {
		return err
	}
	if err := ready(brokerReady{broker.URL()}); err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(context.Background(), patience)
	defer cancel()
	return run.Stop(ctx)
}

// child is such a process.
type child struct {
	testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// spawn starts this binary in a role and reads what it says when it is ready.
func spawn(t testing.TB, role, argument string, into any) *child {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, argumentEnv+"="+argument) // the last two
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	c := &child{TB: t, cmd: cmd, stdin: stdin, stdout: bufio.NewReader(stdout)}
	t.Cleanup(c.end)
	c.hear(patience, into)
	return c
}

// hear reads the next line the process says.
func (c *child) hear(within time.Duration, into any) {
	c.Helper()
	late := time.AfterFunc(within, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	line, err := c.stdout.ReadBytes('\n')
	if err != nil {
		c.Fatalf("%s says nothing: %v", c.cmd.Env[len(c.cmd.Env)-2], err)
	}
	must(c, json.Unmarshal(line, into))
}

// order has the process do something and reads what came of it.
func (c *child) order(what any, within time.Duration, into any) {
	c.Helper()
	must(c, json.NewEncoder(c.stdin).Encode(what))
	c.hear(within, into)
}

// end ends the process and waits for it.
func (c *child) end() {
	_ = c.stdin.Close()
	late := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	if err := c.cmd.Wait(); err != nil {
		c.Errorf("%s: %v", c.cmd.Path, err)
	}
}
