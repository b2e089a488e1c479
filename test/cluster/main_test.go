// Package cluster plays what may befall the processes of one space on a cluster of
// three servers: every server and every authplane is a process of its own, which can
// be killed, stopped where it stands, or cut off. It judges by what a process says of
// itself, by the streams, and by the servers' lists of connections.
package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long anything may take whose time is not the statement. It is far
// above what it should take, so that a busy machine fails no test.
const patience = 90 * time.Second

// programs are what the processes run.
var programs = []string{"./cmd/authplane", "github.com/nats-io/nats-server/v2"}

// stage is where the tests take turns.
var stage *servers

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "authplane-cluster-")
	if err != nil {
		return complain(err)
	}
	defer os.RemoveAll(dir)
	if err := build(dir); err != nil {
		return complain(err)
	}
	if stage, err = startServers(dir, dir); err != nil {
		return complain(err)
	}
	code := m.Run()
	stage.close()
	if err := goleak.Find(); err != nil {
		return complain(err)
	}
	return code
}

func build(dir string) error {
	cmd := exec.Command("go", append([]string{"build", "-o", dir + "/"}, programs...)...)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
