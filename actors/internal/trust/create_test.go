package trust_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

func create(t *testing.T, o trust.Options) string {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Space == "" {
		o.Space = "acme"
	}
	if err := trust.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o.Dir
}

// tree lists everything below dir with its mode, and contents by path.
func tree(t *testing.T, dir string) (listing []string, contents map[string]string) {
	t.Helper()
	contents = map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		listing = append(listing, info.Mode().String()+" "+name)
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			contents[name] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return listing, contents
}

func TestCreateWritesTheWholeLayout(t *testing.T) {
	dir := create(t, trust.Options{Callouts: 2})
	got, contents := tree(t, dir)
	want := []string{
		"-rw-r--r-- nats-server.conf",
		"drwx------ offline",
		"-rw------- offline/auth.seed",
		"-rw------- offline/break-glass-data.creds",
		"-rw------- offline/break-glass-sys.creds",
		"-rw------- offline/ctrl.seed",
		"-rw------- offline/data.seed",
		"-rw------- offline/operator-signing.seed",
		"-rw------- offline/operator.seed",
		"-rw------- offline/svc.seed",
		"-rw------- offline/sys.seed",
		"drwx------ secrets",
		"-rw------- secrets/auth-signing.seed",
		"-rw------- secrets/bearer-keys.json",
		"-rw------- secrets/callout-1.seed",
		"-rw------- secrets/callout-2.seed",
		"-rw------- secrets/chain.json",
		"-rw------- secrets/ctrl-signing.seed",
		"-rw------- secrets/data-signing.seed",
		"-rw------- secrets/owner.secret",
		"-rw------- secrets/presence.seed",
		"-rw------- secrets/svc-signing.seed",
		"-rw------- secrets/sys-evictor.seed",
		"-rw------- secrets/sys-observer.seed",
		"-rw------- secrets/xkey.seed",
		"-rw-r--r-- sentinel.creds",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// What the daemon reads holds no identity: it could not make an account anew.
	identities := map[string]bool{}
	for name, text := range contents {
		if strings.HasPrefix(name, "offline/") && strings.HasSuffix(name, ".seed") {
			identities[strings.TrimSpace(text)] = true
		}
	}
	for name, text := range contents {
		if strings.HasPrefix(name, "offline/") {
			continue
		}
		for seed := range identities {
			if strings.Contains(text, seed) {
				t.Errorf("%s holds a seed that belongs offline", name)
			}
		}
	}
}

func TestTheChainSaysWhatTheDesignSays(t *testing.T) {
	dir := create(t, trust.Options{})
	m := load(t, dir)
	opts, err := server.ProcessConfigFile(trust.ServerConf(dir))
	if err != nil {
		t.Fatal(err)
	}
	_, contents := tree(t, dir)
	var doc struct {
		Accounts map[trust.Account]string `json:"accounts"`
	}
	must(t, json.Unmarshal([]byte(contents["secrets/chain.json"]), &doc))
	account := func(a trust.Account) *jwt.AccountClaims {
		if !strings.Contains(contents["nats-server.conf"], m.Account(a)+": "+doc.Accounts[a]+"\n") {
			t.Errorf("the server does not know %s", a)
		}
		claims, err := jwt.DecodeAccountClaims(doc.Accounts[a])
		if err != nil {
			t.Fatal(err)
		}
		var problems jwt.ValidationResults
		claims.Validate(&problems)
		for _, p := range problems.Issues {
			t.Errorf("%s: %s", a, p.Description)
		}
		return claims
	}
	if opts.SystemAccount != m.Account(trust.SYS) {
		t.Error("SYS is not the system account")
	}
	auth := account(trust.AUTH)
	if !slices.Equal(auth.Authorization.AllowedAccounts, jwt.StringList{m.Account(trust.DATA)}) {
		t.Error("the callout may place users elsewhere than in DATA")
	}
	if auth.Authorization.XKey != m.XKey.Public || len(auth.Authorization.AuthUsers) != len(m.Callouts)+1 || len(m.Callouts) != 4 {
		t.Errorf("AUTH is set up as %+v", auth.Authorization)
	}
	for a, stores := range map[trust.Account]bool{trust.AUTH: false, trust.SVC: false, trust.SYS: false, trust.DATA: true, trust.CTRL: true} {
		if got := account(a).Limits.IsJSEnabled(); got != stores {
			t.Errorf("%s stores streams: %v", a, got)
		}
		if want := string(a) + "_acme"; a != trust.SYS && account(a).Name != want {
			t.Errorf("%s is called %s", a, account(a).Name)
		}
	}
	exports, imports := account(trust.CTRL).Exports, account(trust.SVC).Imports
	if len(exports) != 1 || !exports[0].TokenReq || exports[0].Subject != "cotal.acme.rail.>" || exports[0].Type != jwt.Service {
		t.Errorf("CTRL exports %+v", exports)
	}
	if len(imports) != 1 || !imports[0].Share || imports[0].Account != m.Account(trust.CTRL) {
		t.Errorf("SVC imports %+v", imports)
	}
	for _, a := range []trust.Account{trust.AUTH, trust.DATA} {
		if claims := account(a); len(claims.Exports)+len(claims.Imports) > 0 {
			t.Errorf("%s has exports or imports", a)
		}
	}
}

func TestCreateOnlyOnce(t *testing.T) {
	dir := create(t, trust.Options{})
	listing, contents := tree(t, dir)
	err := trust.Create(t.Context(), trust.Options{Dir: dir, Space: "acme"})
	if !errors.Is(err, messages.ChainStands) {
		t.Errorf("the second time: %v", err)
	}
	after, contentsAfter := tree(t, dir)
	if !slices.Equal(listing, after) {
		t.Errorf("it left %v", after)
	}
	for name, text := range contents {
		if contentsAfter[name] != text {
			t.Errorf("%s has changed", name)
		}
	}
}

// Whatever part of a chain is there, another one is not put beside it, and what
// there is does not pass for a chain.
func TestAPartOfAChainIsNoChain(t *testing.T) {
	for _, part := range []string{"offline", "sentinel.creds", "nats-server.conf", "secrets"} {
		t.Run(part, func(t *testing.T) {
			from, dir := create(t, trust.Options{}), t.TempDir()
			if err := os.Rename(filepath.Join(from, part), filepath.Join(dir, part)); err != nil {
				t.Fatal(err)
			}
			before, _ := tree(t, dir)
			if err := trust.Create(t.Context(), trust.Options{Dir: dir, Space: "acme"}); !errors.Is(err, messages.ChainStands) {
				t.Errorf("got %v", err)
			}
			if after, _ := tree(t, dir); !slices.Equal(before, after) {
				t.Errorf("it left %v", after)
			}
			if part == "secrets" {
				return
			}
			if _, err := trust.Load(t.Context(), trust.Directory(trust.SecretsDir(dir)), "acme"); err == nil {
				t.Error("it was loaded")
			}
		})
	}
}

func TestCreateKeepsWhatElseIsThere(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "authplane.yaml"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	create(t, trust.Options{Dir: dir})
	if _, contents := tree(t, dir); contents["authplane.yaml"] != "mine" {
		t.Error("a file was lost")
	}
	load(t, dir)
}

func TestOneOfManyMakersSucceeds(t *testing.T) {
	dir := t.TempDir()
	const many = 8
	results := make([]error, many)
	var makers sync.WaitGroup
	start := make(chan struct{})
	for i := range many {
		makers.Go(func() {
			<-start
			results[i] = trust.Create(t.Context(), trust.Options{Dir: dir, Space: "acme"})
		})
	}
	close(start)
	makers.Wait()
	made := 0
	for _, err := range results {
		if err == nil {
			made++
		} else if !errors.Is(err, messages.ChainStands) {
			t.Errorf("a loser got %v", err)
		}
	}
	if made != 1 {
		t.Errorf("%d made it", made)
	}
	load(t, dir)
	onlyParts(t, dir)
}

func TestOneOfManyProcessesSucceeds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	var processes []*exec.Cmd
	for range 4 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), makerDir+"="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, cmd)
	}
	codes := map[int]int{}
	for _, cmd := range processes {
		_ = cmd.Wait() // its exit code is what tells
		codes[cmd.ProcessState.ExitCode()]++
	}
	if codes[0] != 1 || codes[3] != 3 {
		t.Errorf("exit codes: %v", codes)
	}
	load(t, dir)
	onlyParts(t, dir)
}

// onlyParts makes sure that no maker left anything behind.
func onlyParts(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 4 {
		t.Errorf("there is %v", entries)
	}
}

func TestCreateRefusesWhatItCannotUse(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		o    trust.Options
		want error
	}{
		"no space":            {t.Context(), trust.Options{}, messages.Malformed},
		"space in capitals":   {t.Context(), trust.Options{Space: "ACME"}, messages.Malformed},
		"space with a dot":    {t.Context(), trust.Options{Space: "a.b"}, messages.Malformed},
		"space climbs":        {t.Context(), trust.Options{Space: ".."}, messages.Malformed},
		"another scheme":      {t.Context(), trust.Options{Space: "acme", NATSURL: "http://h:1"}, messages.Malformed},
		"no host":             {t.Context(), trust.Options{Space: "acme", NATSURL: "nats://:4222"}, messages.Malformed},
		"user in URL":         {t.Context(), trust.Options{Space: "acme", NATSURL: "nats://me:pw@h:1"}, messages.Malformed},
		"path in URL":         {t.Context(), trust.Options{Space: "acme", NATSURL: "nats://h:1/x"}, messages.Malformed},
		"port too high":       {t.Context(), trust.Options{Space: "acme", NATSURL: "nats://h:65536"}, messages.Malformed},
		"port is a name":      {t.Context(), trust.Options{Space: "acme", NATSURL: "nats://h:x"}, messages.Malformed},
		"too many callouts":   {t.Context(), trust.Options{Space: "acme", Callouts: 65}, messages.Malformed},
		"a negative number":   {t.Context(), trust.Options{Space: "acme", Callouts: -1}, messages.Malformed},
		"given up beforehand": {cancelled, trust.Options{Space: "acme"}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.Dir = filepath.Join(t.TempDir(), "new")
			if err := trust.Create(tc.ctx, tc.o); !errors.Is(err, tc.want) {
				t.Errorf("got %v", err)
			}
			if _, err := os.Lstat(tc.o.Dir); err == nil {
				t.Error("something was made")
			}
		})
	}
	err := trust.Create(t.Context(), trust.Options{Dir: "", Space: "X", NATSURL: "x", Callouts: 99})
	for _, want := range []string{"directory", "callout", "space", "URL"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it does not mention the %s: %v", want, err)
		}
	}
}

func TestConfListensWhereTheURLSays(t *testing.T) {
	for url, want := range map[string]struct {
		host string
		port int
	}{
		"":                             {"127.0.0.1", 4222},
		"nats://127.0.0.1:5222":        {"127.0.0.1", 5222},
		"nats://localhost":             {"localhost", 4222},
		"tls://h.example.:1,nats://b":  {"h.example.", 1},
		"nats://[::1]:5222/":           {"::1", 5222},
		"nats://127.0.0.1:0":           {"127.0.0.1", server.RANDOM_PORT},
		" nats://127.0.0.1:1 , nats:x": {"127.0.0.1", 1},
	} {
		dir := create(t, trust.Options{NATSURL: url})
		opts, err := server.ProcessConfigFile(trust.ServerConf(dir))
		if err != nil {
			t.Fatalf("%q: %v", url, err)
		}
		if opts.Host != want.host || opts.Port != want.port || opts.MaxControlLine != 65536 {
			t.Errorf("%q: it listens on %s:%d", url, opts.Host, opts.Port)
		}
	}
}

func TestConfWorksFromAnywhere(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	const awkward = `a "quoted" \dir #1 ü`
	create(t, trust.Options{Dir: awkward})
	opts, err := server.ProcessConfigFile(filepath.Join(root, awkward, "nats-server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(root, awkward, "jetstream"); opts.StoreDir != want {
		t.Errorf("streams go to %s, not to %s", opts.StoreDir, want)
	}
}
