package trust_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// seeds matches anything that looks like a seed.
var seeds = regexp.MustCompile(`\bS[OAUX][A-Z2-7]{50,}`)

func load(t *testing.T, dir string) *trust.Material {
	t.Helper()
	m, err := trust.Load(t.Context(), trust.Directory(trust.SecretsDir(dir)), "acme")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// injected reads a chain's secrets into memory, where a test can spoil them.
func injected(t *testing.T, dir string) trust.Injected {
	t.Helper()
	_, contents := tree(t, trust.SecretsDir(dir))
	store := trust.Injected{}
	for name, text := range contents {
		store[name] = messages.NewSecret(text)
	}
	return store
}

func TestLoadGivesWhatTheDaemonHolds(t *testing.T) {
	dir := create(t, trust.Options{})
	m := load(t, dir)
	if m.Space != "acme" || len(m.InstallID) < 26 || m.Created.IsZero() {
		t.Errorf("it is %s %s of %v", m.Space, m.InstallID, m.Created)
	}
	if len(m.Accounts) != 5 || len(m.Signing) != 4 || len(m.Callouts) != 4 {
		t.Errorf("it has %d accounts, %d signing keys, %d callouts", len(m.Accounts), len(m.Signing), len(m.Callouts))
	}
	if len(m.OwnerSecret.Reveal()) != 32 || m.Keyring.IsZero() || m.XKey.Seed.IsZero() || m.Presence.Seed.IsZero() {
		t.Error("a secret is missing")
	}
	for _, key := range []trust.Key{m.Signing[trust.CTRL], m.Signing[trust.SVC], m.Signing[trust.DATA], m.Signing[trust.AUTH], m.Observer, m.Evictor} {
		pair := m.Signer(key.Public)
		if pair == nil {
			t.Fatalf("nothing signs for %s", key.Public)
		}
		signature, err := pair.Sign([]byte("x"))
		if err != nil || pair.Verify([]byte("x"), signature) != nil || pair.Verify([]byte("y"), signature) == nil {
			t.Errorf("%s does not sign", key.Public)
		}
	}
	if m.Signer(m.Accounts[trust.DATA]) != nil || m.Signer(m.Callouts[0].Public) != nil {
		t.Error("something else signs")
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, shown := range []any{m, *m, m.Signer(m.Observer.Public)} {
			if text := fmt.Sprintf(verb, shown); seeds.MatchString(text) || strings.Contains(text, m.OwnerSecret.Reveal()) {
				t.Errorf("%q of %T shows a secret: %q", verb, shown, seeds.FindString(text))
			}
		}
	}
	text, err := json.Marshal(m)
	if err != nil || seeds.Match(text) {
		t.Errorf("its JSON shows a secret, or %v", err)
	}
}

func TestEveryStoreGivesTheSame(t *testing.T) {
	dir := create(t, trust.Options{})
	want := load(t, dir)
	if got, err := trust.Load(t.Context(), injected(t, dir), "acme"); err != nil || got.InstallID != want.InstallID {
		t.Errorf("injected: %v", err)
	}
	handed := t.TempDir() // wide open, as far as modes tell: systemd sees to it
	for name, secret := range injected(t, dir) {
		if err := os.WriteFile(filepath.Join(handed, "acme_"+name), []byte(secret.Reveal()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("CREDENTIALS_DIRECTORY", handed)
	store, err := trust.Credentials("acme")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := trust.Load(t.Context(), store, "acme"); err != nil || got.InstallID != want.InstallID {
		t.Errorf("credentials: %v", err)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", trust.SecretsDir(dir))
	if store, err = trust.Credentials(""); err != nil {
		t.Fatal(err)
	}
	if _, err := trust.Load(t.Context(), store, "acme"); err != nil {
		t.Errorf("credentials one by one: %v", err)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	if _, err := trust.Credentials(""); !errors.Is(err, messages.KeysUnusable) {
		t.Errorf("without credentials: %v", err)
	}
}

func TestTornMaterialIsRefusedByName(t *testing.T) {
	good := injected(t, create(t, trust.Options{Callouts: 2}))
	foreign := injected(t, create(t, trust.Options{Callouts: 2}))
	for _, name := range slices.Sorted(maps.Keys(good)) {
		whole := good[name].Reveal()
		for damage, spoilt := range map[string]messages.Secret{
			"missing":             {},
			"cut short":           messages.NewSecret(whole[:len(whole)/2]),
			"garbled":             messages.NewSecret(flip(whole)),
			"of another chain":    foreign[name],
			"something else":      messages.NewSecret("hello\n"),
			"only white space":    messages.NewSecret(" \n"),
			"longer than it was":  messages.NewSecret(whole + "x"),
			"another one's place": good[neighbour(name)],
		} {
			// The keyring changes with every rotation and belongs to the space: one of
			// another chain is as whole as ours, and only the bearers would tell.
			if damage == "of another chain" && name == "bearer-keys.json" {
				continue
			}
			t.Run(name+" "+damage, func(t *testing.T) {
				store := maps.Clone(good)
				store[name] = spoilt
				m, err := trust.Load(t.Context(), store, "acme")
				if m != nil || !errors.Is(err, messages.KeysUnusable) {
					t.Fatalf("got %v, %v", m, err)
				}
				if damage != "of another chain" && !strings.Contains(err.Error(), name) {
					t.Errorf("it does not name the file: %v", err)
				}
				if seeds.MatchString(err.Error()) {
					t.Errorf("the error shows a seed")
				}
			})
		}
	}
}

// flip changes one character in the middle.
func flip(s string) string {
	b := []byte(s)
	if i := len(b) / 2; b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return string(b)
}

// neighbour is a secret of the same kind that must not stand in the place of name.
func neighbour(name string) string {
	switch name {
	case "callout-1.seed":
		return "callout-2.seed"
	case "data-signing.seed":
		return "ctrl-signing.seed"
	case "sys-observer.seed":
		return "sys-evictor.seed"
	case "presence.seed":
		return "callout-1.seed"
	default:
		return "data-signing.seed"
	}
}

func TestEveryProblemIsListedAtOnce(t *testing.T) {
	store := injected(t, create(t, trust.Options{}))
	spoilt := []string{"ctrl-signing.seed", "xkey.seed", "callout-3.seed", "owner.secret", "bearer-keys.json", "sys-evictor.seed"}
	for _, name := range spoilt {
		delete(store, name)
	}
	_, err := trust.Load(t.Context(), store, "acme")
	for _, name := range spoilt {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not mentioned: %v", name, err)
		}
	}
	if !errors.Is(err, trust.ErrNoSecret) {
		t.Errorf("got %v", err)
	}
}

func TestAnotherSpaceIsRefused(t *testing.T) {
	dir := create(t, trust.Options{})
	if _, err := trust.Load(t.Context(), injected(t, dir), "other"); !errors.Is(err, messages.KeysUnusable) || !strings.Contains(err.Error(), `"acme"`) {
		t.Errorf("got %v", err)
	}
	// Even a document that claims to be of the other space gives itself away.
	store := injected(t, dir)
	store["chain.json"] = messages.NewSecret(strings.Replace(store["chain.json"].Reveal(), `"space": "acme"`, `"space": "other"`, 1))
	_, err := trust.Load(t.Context(), store, "other")
	for _, account := range []string{"AUTH_acme", "DATA_acme", "CTRL_acme", "SVC_acme", "bearer-keys.json"} {
		if err == nil || !strings.Contains(err.Error(), account) {
			t.Errorf("%s is not mentioned: %v", account, err)
		}
	}
}

// The document may be altered by whoever can write to the secrets; the JWTs in it
// may not, and they must fit each other.
func TestAForgedDocumentIsRefused(t *testing.T) {
	good, foreign := injected(t, create(t, trust.Options{})), injected(t, create(t, trust.Options{}))
	var ours, theirs map[string]any
	for store, into := range map[*trust.Injected]*map[string]any{&good: &ours, &foreign: &theirs} {
		if err := json.Unmarshal([]byte((*store)["chain.json"].Reveal()), into); err != nil {
			t.Fatal(err)
		}
	}
	for name, forge := range map[string]func(doc map[string]any){
		"another version":          func(d map[string]any) { d["v"] = 2 },
		"an unknown field":         func(d map[string]any) { d["more"] = true },
		"no installation":          func(d map[string]any) { delete(d, "install_id") },
		"another operator":         func(d map[string]any) { d["operator"] = theirs["operator"] },
		"no operator":              func(d map[string]any) { delete(d, "operator") },
		"DATA of another chain":    func(d map[string]any) { accountsOf(d)["DATA"] = accountsOf(theirs)["DATA"] },
		"SYS of another chain":     func(d map[string]any) { accountsOf(d)["SYS"] = accountsOf(theirs)["SYS"] },
		"no AUTH":                  func(d map[string]any) { delete(accountsOf(d), "AUTH") },
		"CTRL in the place of SVC": func(d map[string]any) { accountsOf(d)["SVC"] = accountsOf(d)["CTRL"] },
		"fewer callouts":           func(d map[string]any) { d["callouts"] = d["callouts"].([]any)[:1] },
		"no callouts":              func(d map[string]any) { d["callouts"] = []any{} },
		"another owner secret":     func(d map[string]any) { d["owner_secret_sha256"] = theirs["owner_secret_sha256"] },
		"another presence":         func(d map[string]any) { d["presence"] = theirs["presence"] },
	} {
		t.Run(name, func(t *testing.T) {
			var doc map[string]any
			if err := json.Unmarshal([]byte(good["chain.json"].Reveal()), &doc); err != nil {
				t.Fatal(err)
			}
			forge(doc)
			text, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			store := maps.Clone(good)
			store["chain.json"] = messages.NewSecret(string(text))
			if _, err := trust.Load(t.Context(), store, "acme"); !errors.Is(err, messages.KeysUnusable) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func accountsOf(doc map[string]any) map[string]any { return doc["accounts"].(map[string]any) }
