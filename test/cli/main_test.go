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

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "authplane-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	for name, pkg := range map[string]string{
		"authplane":   "github.com/cotal-ai/authplane/cmd/authplane",
		"nats-server": "github.com/nats-io/nats-server/v2",
	} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg)
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, out)
			return 1
		}
	}
	return m.Run()
}
