package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// shell finds the blocks of shell in the README; the first group is set for those
// that are marked to be run. golang finds the Go, and route the
// paths in the source of a face.
var (
	shell  = regexp.MustCompile("(?s)(<!-- run -->\n)?```sh\n(.*?)```")
	route  = regexp.MustCompile(`rs\.on\("([A-Z]+)", "([^"]+)"`)
	golang = regexp.MustCompile("(?s)```go\n(.*?)```")
)

func readme(t *testing.T) string {
	t.Helper()
	return read(t, filepath.Join("..", "..", "README.md"))
}

// The commands of the README are run in their order, as one script, by somebody who
// has the programs in their path.
func TestCommandsOfTheReadme(t *testing.T) {
	var script strings.Builder
	script.WriteString("set -eu\ntrap 'kill %2; wait %2; kill %1; wait' EXIT\n") // the service, and then its server
	for _, block := range shell.FindAllStringSubmatch(readme(t), -1) {
		if block[1] == "" || strings.HasPrefix(block[2], "go run ./cmd/authplane demo") { // that one has a test of its own
			continue
		}
		// The README names a port, and here it may be taken.
		script.WriteString(strings.ReplaceAll(block[2], "127.0.0.1:42220", freeAddress(t)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script.String(), out.String())
	}
	for _, want := range []string{"ready", "plane", "chat.robot", "_INBOX_u_aaaaaaaaaaaaaaaaaaaaaaaaaa-robot", "ended with it"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
}

func TestTheReadmeNamesTheMainCommands(t *testing.T) {
	for _, want := range []string{"go run ./cmd/authplane demo\n", "go test ./...\n", "go build -o bin/ " + strings.Join(programs, " ") + "\n"} {
		if !strings.Contains(readme(t), want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// Every verb that the README or the help mentions is there.
func TestVerbsThatAreMentionedExist(t *testing.T) {
	help := must(t, nil, "help").out
	mentioned := readme(t)
	for _, block := range shell.FindAllString(mentioned, -1) {
		mentioned += strings.ReplaceAll(block, "\nauthplane ", "\n`authplane ")
	}
	for _, found := range regexp.MustCompile("`authplane (?:--dir \\S+ )?([a-z]+)").FindAllStringSubmatch(mentioned, -1) {
		if !strings.Contains(help, "\n  "+found[1]+" ") {
			t.Errorf("there is no verb %s", found[1])
		}
	}
}
