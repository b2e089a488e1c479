package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

const two = `spaces:
  - space: alpha
    nats_url: nats://127.0.0.1:4222
    state_dir: alpha/state
    secrets_dir: alpha/secrets
    listen: 127.0.0.1:7070
  - space: beta
    nats_url: nats://127.0.0.1:4223
    state_dir: /var/lib/beta
    secrets_dir: beta/secrets
    idp: {issuer: https://id.example.com}
log: {level: debug}
`

func TestSeveralSpacesAreRead(t *testing.T) {
	got, err := parse("f", "/srv", []byte(two), Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Spaces) != 2 || got.Log.Level != "debug" {
		t.Fatalf("got %+v", got)
	}
	alpha, beta := got.Spaces[0], got.Spaces[1]
	if alpha.Space != "alpha" || alpha.NATSURL != "nats://127.0.0.1:4222" || alpha.StateDir != "/srv/alpha/state" ||
		alpha.SecretsDir != "/srv/alpha/secrets" || alpha.Listen != "127.0.0.1:7070" || alpha.Provider != nil {
		t.Errorf("the first is %+v", alpha)
	}
	if beta.Space != "beta" || beta.NATSURL != "nats://127.0.0.1:4223" || beta.StateDir != "/var/lib/beta" ||
		beta.SecretsDir != "/srv/beta/secrets" || beta.Listen != "" || beta.Provider.Issuer != "https://id.example.com" {
		t.Errorf("the second is %+v", beta)
	}
}

// One directory of state given for all of them has one below it for each.
func TestOverridesOfSeveralSpaces(t *testing.T) {
	got, err := parse("f", "/srv", []byte(two), Overrides{StateDir: "/run/x", CredentialsDir: "/run/credentials/u"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Spaces[0].StateDir != "/run/x/alpha" || got.Spaces[1].StateDir != "/run/x/beta" {
		t.Errorf("got %s and %s", got.Spaces[0].StateDir, got.Spaces[1].StateDir)
	}
	without := strings.Replace(two, "    secrets_dir: beta/secrets\n", "", 1)
	_, err = parse("f", "/srv", []byte(without), Overrides{CredentialsDir: "/run/credentials/u"})
	if want := "line 7: spaces[1].secrets_dir: is missing; $CREDENTIALS_DIRECTORY"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%q is not in: %v", want, err)
	}
}

func TestRefusalsOfSeveralSpacesNameTheEntry(t *testing.T) {
	const alpha = "spaces:\n  - {space: alpha, nats_url: 'nats://a:1', state_dir: a, secrets_dir: as}\n" // line 2
	tests := []struct {
		name, body string
		want       []string
	}{
		{"everything of each", `spaces:
  - space: Alpha
    nats_url: nats://a
    state_dir: a
    secrets_dir: as
    replicas: 2
  - Nats-URL: nats://b:2
    listen: 80
    secrets_dir: bs
    idp:
      audience: b
  - beta
log: {level: loud}
`, []string{
			"line 2: spaces[0].space: a space is 1 to 32",
			"line 3: spaces[0].nats_url: nats://a names no port",
			"line 6: spaces[0].replicas: 2 is none of 1, 3, 5",
			"line 7: spaces[1].Nats-URL: is not a setting; it is spelled nats_url",
			"line 7: spaces[1].nats_url: is missing",
			"line 7: spaces[1].space: a space is 1 to 32",
			"line 7: spaces[1].state_dir: is missing",
			"line 8: spaces[1].listen: must be text",
			"line 10: spaces[1].idp.issuer: must be an https URL",
			"line 12: spaces[2]: must be a mapping",
			"line 13: log.level: must be debug",
		}},
		{"both forms", "space: gamma\nnats_url: nats://g:3\nidp: {issuer: 'https://a.example'}\n" + alpha, []string{
			"line 1: space: stands beside spaces", "line 2: nats_url: stands beside spaces", "line 3: idp: stands beside spaces"}},
		{"the log of one", alpha[:len(alpha)-2] + ", log: {level: info}}\n", []string{"line 2: spaces[0].log: is not a setting"}},
		{"one name", alpha + "  - {space: alpha, nats_url: 'nats://b:2', state_dir: b, secrets_dir: bs}\n", []string{
			"line 3: spaces[1].space: is that of spaces[0]; each needs its own"}},
		{"one state directory", alpha + "  - {space: beta, nats_url: 'nats://b:2', state_dir: x/../a/, secrets_dir: bs}\n", []string{
			"line 3: spaces[1].state_dir: is that of spaces[0]"}},
		{"one state directory by a link", alpha + "  - {space: beta, nats_url: 'nats://b:2', state_dir: link, secrets_dir: bs}\n", []string{
			"line 3: spaces[1].state_dir: is that of spaces[0]"}},
		{"one set of secrets", alpha + "  - {space: beta, nats_url: 'nats://b:2', state_dir: b, secrets_dir: as}\n", []string{
			"line 3: spaces[1].secrets_dir: is that of spaces[0]"}},
		{"the third like the second", alpha + "  - {space: beta, nats_url: 'nats://b:2', state_dir: b, secrets_dir: bs}\n" +
			"  - {space: beta, nats_url: 'nats://b:2', state_dir: b, secrets_dir: bs}\n", []string{
			"line 4: spaces[2].space: is that of spaces[1]", "line 4: spaces[2].state_dir: is that of spaces[1]", "line 4: spaces[2].secrets_dir: is that of spaces[1]"}},
		{"no list", "spaces: alpha\n", []string{"line 1: spaces: must be a list"}},
		{"nothing", "spaces:\n", []string{"line 1: spaces: has no value"}},
		{"an empty list", "spaces: []\n", []string{"line 1: spaces: names no space"}},
		{"a list in itself", "spaces: &a [*a]\n", []string{"line 1: spaces[0]: must be a mapping"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "a"), 0o700), os.Symlink("a", filepath.Join(dir, "link"))); err != nil {
				t.Fatal(err)
			}
			_, err := parse("authplane.yaml", dir, []byte(test.body), Overrides{})
			if !errors.Is(err, messages.Malformed) {
				t.Fatalf("got %v, want a malformed file", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in:\n%v", want, err)
				}
			}
			if lines := strings.Count(err.Error(), "\n"); lines != len(test.want) {
				t.Errorf("%d problems instead of %d:\n%v", lines, len(test.want), err)
			}
		})
	}
}

// Addresses that only one space can bind are refused to the second.
func TestAddressesOfSeveralSpaces(t *testing.T) {
	tests := []struct {
		first, second string
		want          string // the keys of the second that are blamed
	}{
		{"listen: '127.0.0.1:7070'", "listen: '127.0.0.1:7070'", "listen"},
		{"listen: '127.0.0.1:7070'", "listen: '127.0.0.1:7071'", ""},
		{"listen: '127.0.0.1:7070'", "listen: '127.0.0.2:7070'", ""},
		{"listen: '127.0.0.1:0'", "listen: '127.0.0.1:0'", ""},
		{"replicas: 1", "replicas: 1", ""},
		{"public: {listen: ':7443'}", "public: {listen: '10.0.0.1:7443'}", "public.listen"},
		{"public: {listen: '10.0.0.1:7443'}", "public: {listen: '10.0.0.2:7443'}", ""},
		{"public: {listen: '10.0.0.1:7443'}", "public: {listen: '0.0.0.0:7443'}", "public.listen"},
		{"public: {listen: '0.0.0.0:7443'}", "listen: '127.0.0.1:7443'", "listen"},
		{"public: {listen: '0.0.0.0:7443'}", "listen: '[::1]:7443'", ""},
		{"public: {listen: '[::]:7443'}", "listen: '[::1]:7443'", "listen"},
		{"listen: '127.0.0.1:7443'", "public: {listen: ':7443'}", "public.listen"},
	}
	for _, test := range tests {
		entry := func(name, line string) string {
			return "  - space: " + name + "\n    nats_url: nats://a:1\n    state_dir: " + name + "\n    secrets_dir: s" + name +
				"\n    sentinel_creds: /dev/null\n    " + line + "\n"
		}
		_, err := parse("f", t.TempDir(), []byte("spaces:\n"+entry("a", test.first)+entry("b", test.second)), Overrides{})
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s and %s: %v", test.first, test.second, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), "line 13: spaces[1]."+test.want+": is that of spaces[0]") || strings.Count(err.Error(), "\n") != 1):
			t.Errorf("%s and %s: got %v, want %s", test.first, test.second, err, test.want)
		}
	}
}
