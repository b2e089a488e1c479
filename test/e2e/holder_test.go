package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// holderVariable has this program be a process that holds a plane, and nothing else,
// until it is killed or its input ends.
const holderVariable = "AUTHPLANE_TEST_HOLDER"

func TestMain(m *testing.M) {
	if config := os.Getenv(holderVariable); config != "" {
		if err := hold(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// ground is what such a process is told of its space.
type ground struct {
	Space, NATSURL, StateDir, SecretsDir, SentinelCreds, Eviction string

	BearerLifetime time.Duration
}

// held says on the output of such a process that it holds the plane.
const held = "held"

func hold(text string) error {
	var on ground
	if err := json.Unmarshal([]byte(text), &on); err != nil {
		return err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	h, err := space.Start(context.Background(), system, space.Config{
		Space: on.Space, NATSURL: on.NATSURL, StateDir: on.StateDir, SecretsDir: on.SecretsDir, SentinelCreds: on.SentinelCreds,
		Eviction: on.Eviction, BearerLifetime: on.BearerLifetime,
	})
	if err != nil {
		return err
	}
	for tick := time.NewTicker(10 * time.Millisecond); h.Status().Plane.State != messages.PlaneActive; {
		select {
		case <-tick.C:
		case <-h.Failed():
			return h.Err()
		}
	}
	fmt.Println(held)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// holder is another process that holds the plane.
type holder struct {
	*testing.T
	cmd *exec.Cmd
}

// startHolder starts it on the space that a configuration is of, with a state
// directory of its own, and waits until it holds the plane.
func startHolder(t *testing.T, config space.Config) *holder {
	t.Helper()
	text, err := json.Marshal(ground{
		config.Space, config.NATSURL, filepath.Join(t.TempDir(), "state"), config.SecretsDir, config.SentinelCreds,
		config.Eviction, config.BearerLifetime,
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{T: t, cmd: exec.Command(os.Args[0])}
	h.cmd.Env = append(os.Environ(), holderVariable+"="+string(text))
	h.cmd.Stderr = os.Stderr
	input, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		h.kill()
	})
	said := make(chan string, 1) // one line
	go func() {                  // ends with the output of the process, which is killed at the end
		line, _ := bufio.NewReader(output).ReadString('\n')
		said <- line
	}()
	select {
	case line := <-said:
		if line != held+"\n" {
			t.Fatalf("the other process says %q", line)
		}
	case <-time.After(world.Patience):
		t.Fatal("the other process does not hold the plane")
	}
	return h
}

func (h *holder) signal(s syscall.Signal) {
	h.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		h.Fatal(err)
	}
}

// kill ends the process at once, if it runs.
func (h *holder) kill() {
	if h.cmd.ProcessState == nil {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait() // it was killed
	}
}
