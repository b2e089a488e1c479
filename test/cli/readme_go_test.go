package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// builds compiles a program of the given files to the path it returns.
func builds(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"build", "-o", filepath.Join(dir, "program")}
	for name, body := range files {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return args[2]
}

// blockOf finds the block of Go that has a text in it.
func blockOf(t *testing.T, text string) string {
	t.Helper()
	for _, found := range golang.FindAllStringSubmatch(readme(t), -1) {
		if strings.Contains(found[1], text) {
			return found[1]
		}
	}
	t.Fatalf("no block of Go has %q in it", text)
	return ""
}

// theClient is what somebody would write around the client of the README: it logs in
// with the command, and asks itself something.
const theClient = `package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/nats-io/nats.go"
)

type login struct {
	Token         string ` + "`json:\"token\"`" + `
	NATSURL       string ` + "`json:\"nats_url\"`" + `
	SentinelCreds string ` + "`json:\"sentinel_creds\"`" + `
	InboxPrefix   string ` + "`json:\"inbox_prefix\"`" + `
}

func main() {
	exchange := func() (l login) {
		out, err := exec.Command(os.Args[1], os.Args[2:]...).Output()
		check(err)
		check(json.Unmarshal(out, &l))
		return l
	}
	l := exchange()
	conn, err := connect(l.NATSURL, l.SentinelCreds, l.InboxPrefix, func() string { return exchange().Token })
	check(err)
	_, err = conn.Subscribe("chat.ask", func(m *nats.Msg) { check(m.Respond([]byte("answered"))) })
	check(err)
	reply, err := conn.Request("chat.ask", nil, 10*time.Second)
	check(err)
	fmt.Println(string(reply.Data))
	conn.Close()
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
`

// Whoever connects as the README says can ask and answer.
func TestTheClientOfTheReadme(t *testing.T) {
	block := blockOf(t, "func connect(")
	if lines := strings.Count(block, "\n"); lines > 15 {
		t.Errorf("it has grown to %d lines", lines)
	}
	program := builds(t, map[string]string{"main.go": theClient, "connect.go": "package main\n\n" + block})
	dir := filepath.Join(t.TempDir(), "space")
	p, _ := dev(t, dir)
	must(t, nil, "grant", "--dir", dir, "--sub", "alice", "--actor", "laptop", "--publish", "chat.>", "--subscribe", "chat.>", "--serve")
	client := exec.CommandContext(t.Context(), program,
		filepath.Join(bin, "authplane"), "token", "--json", "--dir", dir, "--sub", "alice", "--actor", "laptop")
	if out, err := client.CombinedOutput(); err != nil || string(out) != "answered\n" {
		t.Errorf("%v\n%s", err, out)
	}
	p.close(syscall.SIGTERM)
}

// The program that embeds a space opens it, says so and nothing else, and closes it.
func TestTheProgramOfTheReadme(t *testing.T) {
	address := freeAddress(t)
	program := builds(t, map[string]string{"main.go": strings.ReplaceAll(blockOf(t, "space.Start("), "127.0.0.1:42220", address)})
	dir := t.TempDir()
	var m made
	must(t, &m, "init", "--json", "--dir", filepath.Join(dir, "acme"), "--space", "acme", "--nats-url", "nats://"+address)
	broker := start(t, "nats-server", "-c", m.ServerConfig)
	p := startIn(t, dir, program)
	if line := p.line(); !strings.HasPrefix(line, "ready: http://127.0.0.1:") {
		t.Errorf("said %q", line)
	}
	p.signal(syscall.SIGTERM)
	if code, rest := p.wait(); code != 0 || len(rest) > 0 || p.said() != "" {
		t.Errorf("exit %d, %q\n%s", code, rest, p.said())
	}
	broker.signal(syscall.SIGTERM)
	broker.wait()
}

// The README lists exactly the paths that the faces have.
func TestThePathsOfTheReadme(t *testing.T) {
	listed := map[string][]string{} // by face: "METHOD path"
	for line := range strings.SplitSeq(readme(t), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || !strings.HasPrefix(cells[1], " `/") {
			continue
		}
		for _, path := range strings.Fields(strings.ReplaceAll(cells[1], "`", "")) {
			for _, method := range strings.Fields(cells[2]) {
				for face, cell := range map[string]string{"loopback": cells[3], "public": cells[4]} {
					if strings.HasPrefix(strings.TrimSpace(cell), "yes") {
						listed[face] = append(listed[face], method+" "+path)
					}
				}
			}
		}
	}
	for _, face := range []string{"loopback", "public"} {
		var served []string
		for _, found := range route.FindAllStringSubmatch(read(t, filepath.Join("..", "..", "actors", "internal", "face", face+".go")), -1) {
			served = append(served, found[1]+" "+found[2])
		}
		slices.Sort(served)
		slices.Sort(listed[face])
		if len(served) == 0 || !slices.Equal(served, listed[face]) {
			t.Errorf("%s: the README lists\n%v, and served is\n%v", face, listed[face], served)
		}
	}
}

// A machine logs in with the file that its grant was written to, and nothing else.
func TestASecretFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "space")
	p, _ := dev(t, dir)
	secret := filepath.Join(t.TempDir(), "robot.secret")
	const robot = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa/robot"
	made := must(t, nil, "grant", "--dir", dir, robot, "--managed", "--publish", "x", "--secret-file", secret)
	held := read(t, secret)
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 || held == "" || strings.Contains(made.out+made.err, held) {
		t.Errorf("%v, %v\n%s%s", info, err, made.out, made.err)
	}
	file := filepath.Join(t.TempDir(), "robot.json")
	login := []string{"context", "--dir", dir, robot, "--actor-token-file", secret, "--out", file}
	must(t, nil, login...)
	if err := connect(t, file); err != nil {
		t.Error(err)
	}
	must(t, nil, "grant", "--dir", dir, robot, "--edit", "--rotate-secret", "--secret-file", secret)
	if read(t, secret) == held {
		t.Error("the secret is the old one")
	}
	must(t, nil, login...)
	p.close(syscall.SIGHUP)
}

// dev refuses what init made, and changes nothing there.
func TestDevRefusesWhatInitMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "acme")
	must(t, nil, "init", "--dir", dir, "--space", "acme")
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := authplane(t, "--dir", dir, "dev", "--json")
	var told struct {
		Error struct{ Code, Reason, Next string }
	}
	if err := json.Unmarshal([]byte(got.err), &told); err != nil || got.code != 3 || told.Error.Reason != "dev.foreign" ||
		!strings.HasPrefix(told.Error.Next, "authplane serve --config "+dir) {
		t.Errorf("exit %d, %v\n%s%s", got.code, err, got.out, got.err)
	}
	if after, err := os.ReadDir(dir); err != nil || len(after) != len(before) {
		t.Errorf("there were %v and are %v, %v", before, after, err)
	}
}
