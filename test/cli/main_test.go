// Package cli tests the authplane binary from outside, as the scripts that use it
// do: output lines, exit codes, signals, and servers that are processes of their own.
package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// bin is the directory with the authplane and nats-server under test.
var bin string

// programs are what the README builds.
var programs = []string{"./cmd/authplane", "github.com/nats-io/nats-server/v2"}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "authplane-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	build := exec.Command("go", append([]string{"build", "-o", dir + "/"}, programs...)...)
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
