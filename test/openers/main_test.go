// Package openers has ten processes open the plane of one space at the same moment.
package openers

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// rounds is how often they do; the whole statement is about twenty.
var rounds = flag.Int("rounds", 3, "how often ten processes race for the plane")

// program is the authplane under test.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "authplane-openers-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "authplane")
	build := exec.Command("go", "build", "-o", program, "./cmd/authplane")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
