package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
)

// A development space from its first line to its last, with a person in between.
func TestDev(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "space")
	p, r := dev(t, dir)

	t.Run("the first line tells where everything is", func(t *testing.T) {
		if r.Space != "dev" || r.PublicURL != "" || !strings.HasPrefix(r.NATSURL, "nats://127.0.0.1:") ||
			!strings.HasPrefix(r.URL, "http://127.0.0.1:") || !strings.HasPrefix(r.IDPIssuer, "http://127.0.0.1:") {
			t.Errorf("got %+v", r)
		}
		for _, path := range []string{r.CapabilityFile, r.SentinelCreds, r.StateDir} {
			if _, err := os.Stat(path); err != nil || !filepath.IsAbs(path) {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
	t.Run("the record in the state directory says the same", func(t *testing.T) {
		path := filepath.Join(r.StateDir, "service.json")
		var left record
		if err := json.Unmarshal([]byte(read(t, path)), &left); err != nil || left != r {
			t.Errorf("got %+v, %v", left, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	})
	t.Run("reading verbs", func(t *testing.T) {
		var status struct{ Space, State string }
		if must(t, &status, "status", "--json", "--dir", dir); status.State != "ready" || status.Space != "dev" {
			t.Errorf("status %+v", status)
		}
		var tree struct {
			Actors []struct {
				Path, State string
			}
		}
		must(t, &tree, "tree", "--json", "--dir", dir)
		for _, actor := range tree.Actors {
			if actor.State != "open" {
				t.Errorf("%s is %s", actor.Path, actor.State)
			}
		}
		if len(tree.Actors) < 5 {
			t.Errorf("a tree of %d", len(tree.Actors))
		}
		picture := must(t, nil, "tree", "--dir", dir).out
		if !strings.Contains(picture, "├── plane") || !strings.Contains(picture, "└── ") {
			t.Errorf("no picture:\n%s", picture)
		}
		for _, verb := range []string{"connections", "grants", "explain"} {
			must(t, new(map[string]any), verb, "--json", "--dir", dir)
			must(t, nil, verb, "--dir", dir)
		}
	})

	var grant struct {
		Owner, Actor string
		Revision     int
	}
	must(t, &grant, "grant", "--json", "--dir", dir, "--sub", "alice", "--actor", "laptop", "--publish", "chat.>", "--subscribe", "chat.>")
	principal := grant.Owner + "/" + grant.Actor

	t.Run("a person connects with the context that is written", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "alice.json")
		must(t, nil, "context", "--dir", dir, "--sub", "alice", "--actor", "laptop", "--out", file)
		if err := connect(t, file); err != nil {
			t.Error(err)
		}
	})
	t.Run("an edit keeps what it does not name", func(t *testing.T) {
		must(t, nil, "grant", "--dir", dir, "--edit", principal, "--subscribe", "news.>")
		var now struct {
			Publish, Subscribe []string
			Revision           int
		}
		must(t, &now, "show", "--json", "--dir", dir, principal)
		if !slices.Equal(now.Publish, []string{"chat.>"}) || !slices.Equal(now.Subscribe, []string{"news.>"}) || now.Revision != grant.Revision+1 {
			t.Errorf("got %+v", now)
		}
		if got := authplane(t, "grant", "--dir", dir, "--edit", principal, "--revision", "1", "--publish", "x"); got.code != 3 {
			t.Errorf("an edit of what has moved on: exit %d, %s", got.code, got.err)
		}
	})
	t.Run("a machine", func(t *testing.T) {
		var made struct {
			Token string `json:"actor_token"`
		}
		must(t, &made, "grant", "--json", "--dir", dir, "--owner", grant.Owner, "--actor", "robot", "--managed", "--parent", principal, "--publish", "chat.robot")
		secret := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(secret, []byte(made.Token), 0o600); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "robot.json")
		must(t, nil, "context", "--dir", dir, "--owner", grant.Owner, "--actor", "robot", "--actor-token-file", secret, "--out", file)
		if err := connect(t, file); err != nil {
			t.Error(err)
		}
	})
	t.Run("a revoked person is out, and it is explained", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "alice.json")
		must(t, nil, "context", "--dir", dir, "--sub", "alice", "--actor", "laptop", "--out", file)
		must(t, nil, "revoke", "--dir", dir, principal)
		if err := connect(t, file); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("connected with %v", err)
		}
		if got := authplane(t, "token", "--dir", dir, "--sub", "alice", "--actor", "laptop"); got.code != 3 || got.out != "" {
			t.Errorf("token: exit %d, %s", got.code, got.err)
		}
		var list struct {
			Denials []struct{ ID, Kind, Code, Principal string }
		}
		must(t, &list, "explain", "--json", "--dir", dir)
		if len(list.Denials) == 0 {
			t.Fatal("nothing is kept")
		}
		d := list.Denials[0]
		if d.Kind != "denied" || d.Code != "permission-denied" || d.Principal != grant.Owner+".laptop" {
			t.Errorf("kept %+v", d)
		}
		if told := must(t, nil, "explain", "--dir", dir, d.ID).out; !strings.Contains(told, d.Principal) || !strings.Contains(told, "remedy") {
			t.Errorf("explained as:\n%s", told)
		}
	})
	t.Run("refusals", func(t *testing.T) {
		for want, args := range map[int][]string{
			2: {"show", "--dir", dir, "nobody"},
			3: {"show", "--dir", dir, grant.Owner + "/nobody"},
		} {
			if got := authplane(t, args...); got.code != want {
				t.Errorf("%v: exit %d, %s", args, got.code, got.err)
			}
		}
		if got := authplane(t, "dev", "--dir", dir); got.code != 3 || got.out != "" {
			t.Errorf("a second one from the same directory: exit %d, out %q, err %s", got.code, got.out, got.err)
		}
		if got := authplane(t, "dev", "--dir", dir, "--space", "other"); got.code != 3 {
			t.Errorf("of another space: exit %d, %s", got.code, got.err)
		}
	})

	capability := strings.TrimSpace(read(t, r.CapabilityFile))
	if e := p.close(syscall.SIGTERM); len(e.Connections) < 3 {
		t.Errorf("an inventory of %d", len(e.Connections))
	}
	if capability == "" || strings.Contains(p.said(), capability) {
		t.Error("the capability stands in the log")
	}
	if _, err := os.Stat(filepath.Join(r.StateDir, "service.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the record was left behind: %v", err)
	}
	if got := authplane(t, "status", "--dir", dir); got.code != 4 || got.out != "" {
		t.Errorf("status of nothing: exit %d, %s", got.code, got.err)
	}

	t.Run("a second run goes on where the first one ended", func(t *testing.T) {
		p, again := dev(t, dir)
		if again.NATSURL != r.NATSURL || again.IDPIssuer != r.IDPIssuer {
			t.Errorf("moved from %s, %s to %s, %s", r.NATSURL, r.IDPIssuer, again.NATSURL, again.IDPIssuer)
		}
		var now struct{ State string }
		must(t, &now, "show", "--json", "--dir", dir, principal)
		if now.State != "revoked" {
			t.Errorf("the grant is %s", now.State)
		}
		p.close(syscall.SIGINT)
	})
}

// connect connects once as the nats tool would with that context.
func connect(t *testing.T, file string) error {
	t.Helper()
	var c struct {
		URL         string `json:"url"`
		Token       string `json:"token"`
		Creds       string `json:"creds"`
		InboxPrefix string `json:"inbox_prefix"`
	}
	if err := json.Unmarshal([]byte(read(t, file)), &c); err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(c.URL, nats.Token(c.Token), nats.UserCredentials(c.Creds), nats.CustomInboxPrefix(c.InboxPrefix))
	if err == nil {
		conn.Close()
	}
	return err
}

func TestAKilledServiceLeavesAStaleRecord(t *testing.T) {
	dir := t.TempDir()
	p, _ := dev(t, dir)
	p.signal(syscall.SIGKILL)
	p.wait()
	got := authplane(t, "status", "--dir", dir)
	if got.code != 4 || !strings.Contains(got.err, "stale") {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
	again, _ := dev(t, dir)
	must(t, nil, "status", "--dir", dir)
	again.close(syscall.SIGTERM)
}

func TestFaultInjectionIsOffUnlessAskedFor(t *testing.T) {
	dir := t.TempDir()
	p, r := dev(t, dir)
	if status := kill(t, r, "exchange"); status != 404 {
		t.Errorf("answered %d", status)
	}
	p.close(syscall.SIGTERM)

	p, r = dev(t, dir, "--fault-injection")
	if status := kill(t, r, "plane/writer"); status != 202 {
		t.Errorf("answered %d", status)
	}
	p.close(syscall.SIGTERM)
}
