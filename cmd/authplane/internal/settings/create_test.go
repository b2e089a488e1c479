package settings

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

func TestWhatIsCreatedIsRead(t *testing.T) {
	for _, issuer := range []string{"", "https://id.example.com/tenant"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "authplane.yaml")
		b := Beginning{Space: "acme", NATSURL: "nats://127.0.0.1:4222", Issuer: issuer, Replicas: 3,
			SecretsDir: "secrets", SentinelCreds: "sentinel.creds"}
		if err := b.Check(dir); err != nil {
			t.Fatal(err)
		}
		if err := b.Create(path); err != nil {
			t.Fatal(err)
		}
		got, err := Load(path, Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		c := got.Spaces[0]
		if c.Space != "acme" || c.NATSURL != b.NATSURL || c.Replicas != 3 || c.StateDir != filepath.Join(dir, "state") ||
			c.SecretsDir != filepath.Join(dir, "secrets") || c.SentinelCreds != filepath.Join(dir, "sentinel.creds") {
			t.Errorf("got %+v", c)
		}
		if (c.Provider != nil) != (issuer != "") || issuer != "" && c.Provider.Issuer != issuer {
			t.Errorf("issuer %q became %+v", issuer, c.Provider)
		}
		if err := b.Create(path); !errors.Is(err, messages.ConfigStands) {
			t.Errorf("a second time: %v", err)
		}
	}
}

// Every setting stands in the file, most of them as a comment; and every comment that
// is a setting would be read.
func TestEverySettingIsShown(t *testing.T) {
	for _, issuer := range []string{"", "https://id.example.com"} {
		b := Beginning{Space: "acme", NATSURL: "nats://127.0.0.1:4222", Issuer: issuer, Replicas: 1, SecretsDir: "s", SentinelCreds: "c"}
		body, err := b.render()
		if err != nil {
			t.Fatal(err)
		}
		shown := regexp.MustCompile(`(?m)^# ( *(?:- )?[a-z_]+:)`).ReplaceAllString(string(body), "$1")
		s := shape{lines: map[string]int{}}
		s.read([]byte(shown), new(file))
		if len(s.problems) > 0 {
			t.Errorf("%v in\n%s", s.problems, shown)
		}
		for _, key := range keysOf("", reflect.TypeFor[file]()) {
			if s.lines[key] == 0 {
				t.Errorf("%s is not shown", key)
			}
		}
	}
}

func keysOf(prefix string, structure reflect.Type) []string {
	if structure.Kind() == reflect.Pointer {
		structure = structure.Elem()
	}
	if structure.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for i := range structure.NumField() {
		if field := structure.Field(i); field.Anonymous {
			keys = append(keys, keysOf(prefix, field.Type)...)
			continue
		}
		key := prefix + structure.Field(i).Tag.Get("yaml")
		keys = append(append(keys, key), keysOf(key+".", structure.Field(i).Type)...)
	}
	return keys
}

// What init is told is refused by the name of its flag, and without lines of a file
// that is not there.
func TestWhatCannotBeReadIsNotCreated(t *testing.T) {
	good := Beginning{Space: "acme", NATSURL: "nats://127.0.0.1:4222", Replicas: 1, SecretsDir: "s", SentinelCreds: "c"}
	for want, spoil := range map[string]func(*Beginning){
		"--space: a space is 1 to 32":                func(b *Beginning) { b.Space = "Not A Space" },
		"--idp: must be an https URL":                func(b *Beginning) { b.Issuer = "ftp://id.example.com" },
		"--replicas: 2 is none of 1, 3, 5":           func(b *Beginning) { b.Replicas = 2 },
		"--nats-url: nats://a:0 must name a port":    func(b *Beginning) { b.NATSURL = "nats://a:0" },
		"--nats-url: names several servers":          func(b *Beginning) { b.NATSURL = "nats://a:1,nats://b:2" },
		"holds characters that do not belong there":  func(b *Beginning) { b.NATSURL = "nats://a\nlisten: x" },
		"--nats-url: nats://127.0.0.1 names no port": func(b *Beginning) { b.NATSURL = "nats://127.0.0.1" },
	} {
		b := good
		spoil(&b)
		err := b.Check(t.TempDir())
		if !errors.Is(err, messages.Malformed) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "line ") {
			t.Errorf("%q is not what is said: %v", want, err)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add(`a "b" \c`)
	f.Add("é: #\u2028")
	f.Fuzz(func(t *testing.T, text string) {
		b := Beginning{Space: "acme", NATSURL: text, Replicas: 1, SecretsDir: "s", SentinelCreds: "c"}
		path := filepath.Join(t.TempDir(), "f")
		if err := b.Create(path); err != nil {
			if _, err := os.Stat(path); err == nil {
				t.Error("refused, and yet there is a file")
			}
			return
		}
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var got file
		s := shape{lines: map[string]int{}}
		s.read(body, &got)
		if len(s.problems) > 0 || got.NATSURL != text {
			t.Errorf("%q became %q, %v", text, got.NATSURL, s.problems)
		}
	})
}

func TestBeside(t *testing.T) {
	for path, want := range map[string]string{"/srv/a/secrets": "secrets", "/srv/b": "/srv/b", "/srv/ab": "/srv/ab", "/srv/a/..x": "..x"} {
		if got := Beside("/srv/a", path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
