package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cotal-ai/authplane/messages"
)

// Every command that a refusal names as the next step can be run as it stands, once
// it is known whom it is about.
func TestEveryNextCommandRuns(t *testing.T) {
	var catalogue []byte
	for _, file := range []string{"catalogue.go", "catalogue_controllers.go", "catalogue_runs.go", "catalogue_provision.go"} {
		part, err := os.ReadFile("../../messages/" + file)
		if err != nil {
			t.Fatal(err)
		}
		catalogue = append(catalogue, part...)
	}
	named := regexp.MustCompile(`authplane [^",]*`).FindAllString(string(catalogue), -1)
	if len(named) < 10 {
		t.Fatalf("the catalogue names only %d commands", len(named))
	}
	about := messages.Principal{Owner: exampleOwner, Actor: "laptop"}
	for _, command := range named {
		command = messages.Error{Next: command}.NextFor(about)
		runnable(t, strings.ReplaceAll(command, "<name>", "n1"))
	}
}

// The examples of the help can be run, and name principals that could be.
func TestEveryExampleRuns(t *testing.T) {
	for _, verb := range newRoot().Commands() {
		for _, line := range strings.Split(verb.Example, "\n") {
			if command, ours := strings.CutPrefix(strings.TrimSpace(line), "authplane "); ours {
				command, _, _ = strings.Cut(command, " <")
				runnable(t, "authplane "+command)
			}
			for _, owner := range regexp.MustCompile(`u_[a-z0-9]*`).FindAllString(line, -1) {
				if len(owner) != len(exampleOwner) {
					t.Errorf("%q: %s is no owner", line, owner)
				}
			}
		}
	}
}

func newRoot() *cobra.Command {
	return (&app{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}, getenv: os.Getenv}).root()
}

// runnable runs a command against a service that has nothing, which must not take it
// for a misuse. What would run a service is only read.
func runnable(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(command)[1:]
	for i := range words {
		words[i] = strings.Trim(words[i], "'")
	}
	switch words[0] {
	case "dev", "serve", "init":
		found, rest, err := newRoot().Find(words)
		if err == nil {
			err = found.ParseFlags(rest)
		}
		if err != nil || found.Name() != words[0] {
			t.Errorf("%q: %v", command, err)
		}
		return
	case "enroll":
		t.Chdir(t.TempDir())
	case "token", "context", "grant":
		t.Chdir(t.TempDir())
		if err := os.WriteFile("robot.secret", []byte("S3CRET"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := newDouble(t, nil)
	got := runIn(t, "id token", append([]string{"--dir", d.dir}, words...)...)
	if got.code == messages.ExitUsage || got.code == messages.ExitFailed {
		t.Errorf("%q: exit %d\n%s", command, got.code, got.err)
	}
}
