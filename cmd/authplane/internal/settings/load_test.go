package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
)

const whole = `
space: acme
nats_url: nats://127.0.0.1:4222
state_dir: state
secrets_dir: /etc/authplane/secrets
sentinel_creds: sentinel.creds
idp:
  issuer: https://id.example.com
  audience: authplane
  algorithms: [EdDSA, ES256]
  jwks_url: https://id.example.com/keys
listen: 127.0.0.1:7070
public:
  listen: 0.0.0.0:7443
  url: https://auth.example.com
  cert_file: tls/cert.pem
  key_file: tls/key.pem
  client_nats_url: tls://nats.example.com:4222
replicas: 3
responders: 4
servers: [NCAIU5XWDCCO5XHR2VZ2NRV7A3SR65GUMNGDP4AJECTSQSVW4ZDXSVF5]
eviction: expiry
controller_lifetime: 3600
observe_requests: true
log:
  level: debug
  format: json
`

func TestEveryKeyIsRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tls"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sentinel.creds", "tls/cert.pem", "tls/key.pem"} { // those that must be there
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := parse("authplane.yaml", dir, []byte(whole), Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	c := got.Spaces[0]
	for name, pair := range map[string][2]any{
		"space":           {c.Space, "acme"},
		"nats_url":        {c.NATSURL, "nats://127.0.0.1:4222"},
		"state_dir":       {c.StateDir, dir + "/state"},
		"secrets_dir":     {c.SecretsDir, "/etc/authplane/secrets"},
		"sentinel_creds":  {c.SentinelCreds, dir + "/sentinel.creds"},
		"idp.issuer":      {c.Provider.Issuer, "https://id.example.com"},
		"idp.audience":    {c.Provider.Audience, "authplane"},
		"idp.algorithms":  {strings.Join(c.Provider.Algorithms, " "), "EdDSA ES256"},
		"idp.jwks_url":    {c.Provider.JWKSURL, "https://id.example.com/keys"},
		"listen":          {c.Listen, "127.0.0.1:7070"},
		"public.listen":   {c.Public.Listen, "0.0.0.0:7443"},
		"public.url":      {c.Public.URL, "https://auth.example.com"},
		"cert_file":       {c.Public.CertFile, dir + "/tls/cert.pem"},
		"key_file":        {c.Public.KeyFile, dir + "/tls/key.pem"},
		"client_nats_url": {c.Public.ClientNATSURL, "tls://nats.example.com:4222"},
		"replicas":        {c.Replicas, 3},
		"responders":      {c.Responders, 4},
		"servers":         {strings.Join(c.Servers, " "), "NCAIU5XWDCCO5XHR2VZ2NRV7A3SR65GUMNGDP4AJECTSQSVW4ZDXSVF5"},
		"eviction":        {c.Eviction, space.EvictionExpiry},
		"controllers":     {c.ControllerLifetime, time.Hour},
		"observe":         {c.ObserveRequests, true},
		"log.level":       {got.Log.Level, "debug"},
		"log.format":      {got.Log.Format, "json"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %v, want %v", name, pair[0], pair[1])
		}
	}
}

const least = "space: acme\nnats_url: nats://127.0.0.1:4222\nstate_dir: state\n"

func TestOverrides(t *testing.T) {
	got, err := parse("f", "/srv", []byte(least), Overrides{StateDir: "/run/x", CredentialsDir: "/run/credentials/u"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Spaces[0].StateDir != "/run/x" || got.Spaces[0].SecretsDir != "/run/credentials/u" {
		t.Errorf("got state %q, secrets %q", got.Spaces[0].StateDir, got.Spaces[0].SecretsDir)
	}
	got, err = parse("f", "/srv", []byte(least+"secrets_dir: mine\n"), Overrides{CredentialsDir: "/run/credentials/u"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Spaces[0].SecretsDir != "/srv/mine" {
		t.Errorf("secrets_dir of the file gave way to the environment: %q", got.Spaces[0].SecretsDir)
	}
}

func TestRefusalsNameTheLineAndTheKey(t *testing.T) {
	const good = least + "secrets_dir: secrets\n" // four lines
	tests := []struct {
		name, body string
		want       []string
	}{
		{"unknown key", good + "nats_urls: x\n", []string{"line 5: nats_urls: is not a setting"}},
		{"misspelled key", good + "Sentinel-Creds: x\n", []string{"line 5: Sentinel-Creds: is not a setting; it is spelled sentinel_creds"}},
		{"unknown nested key", good + "idp:\n  issuer: https://a.example\n  secret: x\n", []string{"line 7: idp.secret: is not a setting"}},
		{"number for text", good + "listen: 80\n", []string{"line 5: listen: must be text; put it in quotes"}},
		{"mapping for text", good + "listen: {a: b}\n", []string{"line 5: listen: must be text"}},
		{"text for number", good + "replicas: three\n", []string{"line 5: replicas: must be a whole number"}},
		{"fraction", good + "replicas: 1.5\n", []string{"line 5: replicas: must be a whole number"}},
		{"text for list", good + "servers: NABC\n", []string{"line 5: servers: must be a list"}},
		{"number in list", good + "servers: [1]\n", []string{"line 5: servers: must be text; put it in quotes"}},
		{"text for mapping", good + "idp: https://a.example\n", []string{"line 5: idp: must be a mapping"}},
		{"no value", good + "idp:\n", []string{"line 5: idp: has no value"}},
		{"twice", good + "space: other\n", []string{"line 5: space: stands twice, first on line 1"}},
		{"two documents", good + "---\nspace: b\n", []string{"must be one YAML document"}},
		{"not a mapping", "- a\n", []string{"line 1: must be a mapping"}},
		{"no YAML", "space: [\n", []string{"line"}},
		{"empty", "", []string{"space: ", "nats_url: is missing", "state_dir: is missing"}},
		{"meaning", good + "replicas: 2\n", []string{"line 5: replicas: 2 is none of 1, 3, 5"}},
		{"servers", good + "servers: [NABC, x]\n", []string{`line 5: servers: "NABC" is not the public key`, `line 5: servers: "x" is not`}},
		{"public", good + "public:\n  listen: 80\n  key_file: k.pem\n", []string{
			"line 6: public.listen: must be text", "sentinel_creds: is missing; the public face", "public.cert_file: is missing beside the key"}},
		{"public without files", good + "sentinel_creds: s.creds\npublic: {listen: ':1', cert_file: c.pem, key_file: k.pem}\n", []string{
			"line 5: sentinel_creds: open ", "line 6: public.cert_file: open ", "line 6: public.key_file: open "}},
		{"eviction", good + "eviction: hope\n", []string{`line 5: eviction: "hope" is neither sweep nor expiry`}},
		{"a life below the least", good + "controller_lifetime: 4\n", []string{"line 5: controller_lifetime: 4s is not whole seconds"}},
		{"a life above the most", good + "controller_lifetime: 86401\n", []string{"line 5: controller_lifetime: 24h0m1s is not whole seconds"}},
		{"a life that comes round", good + "controller_lifetime: 18446744078\n", []string{"line 5: controller_lifetime: "}},
		{"a life below nothing", good + "controller_lifetime: -5\n", []string{"line 5: controller_lifetime: "}},
		{"text for a flag", good + "observe_requests: \"true\"\n", []string{"line 5: observe_requests: must be true or false"}},
		{"a word for a flag", good + "observe_requests: yes\n", []string{"line 5: observe_requests: must be true or false"}},
		{"a number for a flag", good + "observe_requests: 1\n", []string{"line 5: observe_requests: must be true or false"}},
		{"no secrets", least, []string{"secrets_dir: is missing, and $CREDENTIALS_DIRECTORY is not set"}},
		{"log", good + "log: {level: loud, format: xml}\n", []string{"log.level: must be", "log.format: must be"}},
		{"missing key set", good + "idp:\n  issuer: https://a.example\n  jwks_file: nowhere.json\n", []string{"line 7: idp.jwks_file: "}},
		{"all at once", "spice: acme\nreplicas: x\nresponders: 9\n", []string{
			"line 1: spice: is not a setting", "line 2: replicas: must be", "line 3: responders: 9 is not",
			"nats_url: is missing", "state_dir: is missing",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse("authplane.yaml", t.TempDir(), []byte(test.body), Overrides{})
			if !errors.Is(err, messages.Malformed) {
				t.Fatalf("got %v, want a malformed file", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in:\n%v", want, err)
				}
			}
		})
	}
}

// The rule for server URLs is one, wherever they stand.
func TestURLsOfServers(t *testing.T) {
	tests := map[string]string{
		"nats://a:1": "", "tls://a:1,nats://b:2": "", "wss://a:443, ws://[::1]:80": "", "nats://a:4222/": "",
		"127.0.0.1:4222": "cannot be read", "http://a:1": "must begin with nats://", "a": "must begin with nats://",
		"nats://:4222": "names no host", "nats://a": "names no port", "nats://a:0": "from 1 to 65535", "nats://a:70000": "from 1 to 65535",
		"nats://a:1/x": "must end behind the port", "nats://me:pw@a:1": "holds a user", "nats://a:1,": "must begin with nats://",
		"nats://a:1,ws://b:2": "either all", "nats://a:x": "cannot be read",
	}
	for urls, want := range tests {
		body := "space: acme\nnats_url: '" + urls + "'\nstate_dir: state\nsecrets_dir: s\n" +
			"sentinel_creds: /dev/null\npublic: {listen: ':1', client_nats_url: '" + urls + "'}\n"
		_, err := parse("f", t.TempDir(), []byte(body), Overrides{})
		for _, key := range []string{"line 2: nats_url: ", "line 6: public.client_nats_url: "} {
			switch {
			case want == "" && err != nil:
				t.Errorf("%s: %v", urls, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: got %v, want %q", urls, err, want)
			}
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("a password is shown: %v", err)
		}
	}
}

func TestAWrongTypeIsNotAlsoMissing(t *testing.T) {
	_, err := parse("f", "/srv", []byte("space: acme\nnats_url: [a]\nstate_dir: s\nsecrets_dir: x\n"), Overrides{})
	if err == nil || strings.Contains(err.Error(), "missing") {
		t.Errorf("got %v", err)
	}
}

func TestLoadReadsRelativeToTheFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "keys.json"), []byte(`{"keys":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "authplane.yaml")
	body := least + "secrets_dir: secrets\nidp:\n  issuer: https://a.example\n  jwks_file: keys.json\n"
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(dir))
	got, err := Load(filepath.Join(filepath.Base(dir), "authplane.yaml"), Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Spaces[0].Provider.JWKS) != `{"keys":[]}` {
		t.Errorf("key set: %q", got.Spaces[0].Provider.JWKS)
	}
	if !filepath.IsAbs(got.Spaces[0].SecretsDir) {
		t.Errorf("secrets_dir %q is not absolute", got.Spaces[0].SecretsDir)
	}
	if _, err := Load(filepath.Join(dir, "none.yaml"), Overrides{}); !errors.Is(err, messages.Malformed) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add(least)
	f.Add(two)
	f.Add("spaces: &a [*a, {idp: *a}]\n")
	f.Add("a: &a [*a]\n")
	f.Add("<<: {space: x}\n")
	f.Add("space: !!binary aGk=\n? [a]\n: b\n")
	f.Fuzz(func(t *testing.T, body string) {
		_, err := parse("f", t.TempDir(), []byte(body), Overrides{})
		if err != nil && !errors.Is(err, messages.Malformed) {
			t.Errorf("an error without an entry: %v", err)
		}
	})
}
