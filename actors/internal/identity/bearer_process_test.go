package identity_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

// processSample is sample of a process of an instance.
func processSample() identity.Bearer {
	b := sample()
	b.Process = identity.Process{Endpoint: "svc_a", Instance: aUID, Epoch: 7, CredentialID: "own-7"}
	return b
}

// processClaims is what processSample says, in JSON.
func processClaims() map[string]any {
	return with(goodClaims(), "act.instance", map[string]any{"endpoint": "svc_a", "name": aUID, "epoch": 7, "credentialId": "own-7"})
}

func TestBearerOfAProcess(t *testing.T) {
	ring, stored := newKeyring(t)
	token, err := ring.Sign(processSample())
	if got := mustVerify(t, ring, must(t, token, err), noon); !same(got, processSample()) {
		t.Errorf("got %+v", got)
	}
	forged := newForger(t, ring, stored)
	if b, err := ring.Verify(forged.sign(forged.header(), processClaims()), noon); err != nil || !same(b, processSample()) {
		t.Errorf("got %+v, %v", b, err)
	}
	// A bearer of nobody's process says nothing of one.
	if b := mustVerify(t, ring, mustSign(t, ring, sample()), noon); !b.Process.IsZero() {
		t.Errorf("got %+v", b)
	}
	first := processSample()
	first.Process.Epoch = 0
	if b := mustVerify(t, ring, mustSign(t, ring, first), noon); b.Process != first.Process {
		t.Errorf("the first process is %+v", b.Process)
	}
}

func mustSign(t *testing.T, ring *identity.Keyring, b identity.Bearer) messages.Secret {
	t.Helper()
	token, err := ring.Sign(b)
	return must(t, token, err)
}

func TestProcessesThatAreNotSigned(t *testing.T) {
	ring, _ := newKeyring(t)
	for what, spoil := range map[string]func(*identity.Process){
		"no endpoint":         func(p *identity.Process) { p.Endpoint = "" },
		"dotted endpoint":     func(p *identity.Process) { p.Endpoint = "a.b" },
		"wild endpoint":       func(p *identity.Process) { p.Endpoint = "*" },
		"long endpoint":       func(p *identity.Process) { p.Endpoint = strings.Repeat("a", 257) },
		"no instance":         func(p *identity.Process) { p.Instance = "" },
		"instance by name":    func(p *identity.Process) { p.Instance = "one" },
		"no credential":       func(p *identity.Process) { p.CredentialID = "" },
		"dotted credential":   func(p *identity.Process) { p.CredentialID = "a.b" },
		"long credential":     func(p *identity.Process) { p.CredentialID = strings.Repeat("c", 65) },
		"epoch past a number": func(p *identity.Process) { p.Epoch = 1_000_000_000_000_000 },
	} {
		b := processSample()
		spoil(&b.Process)
		if token, err := ring.Sign(b); !errors.Is(err, messages.Malformed) || !token.IsZero() {
			t.Errorf("%s is signed: %v", what, err)
		}
	}
}

func TestProcessesThatAreNotRead(t *testing.T) {
	ring, stored := newKeyring(t)
	f := newForger(t, ring, stored)
	good := processClaims()["act"].(map[string]any)["instance"].(map[string]any)
	change := func(member string, value any) map[string]any {
		changed := maps.Clone(good)
		if changed[member] = value; value == nil {
			delete(changed, member)
		}
		return with(goodClaims(), "act.instance", changed)
	}
	raw := func(old, by string) string {
		text, _ := json.Marshal(processClaims())
		if !strings.Contains(string(text), old) {
			t.Fatalf("no %s in %s", old, text)
		}
		return strings.Replace(string(text), old, by, 1)
	}
	for what, claims := range map[string]any{
		"empty":               with(goodClaims(), "act.instance", map[string]any{}),
		"of empty members":    with(goodClaims(), "act.instance", map[string]any{"endpoint": "", "name": "", "epoch": 0, "credentialId": ""}),
		"null":                raw(`"instance":{`, `"instance":null,"x":{`),
		"a text":              with(goodClaims(), "act.instance", "svc_a"),
		"a list":              with(goodClaims(), "act.instance", []any{good}),
		"no endpoint":         change("endpoint", nil),
		"no name":             change("name", nil),
		"no epoch":            change("epoch", nil),
		"no credential":       change("credentialId", nil),
		"an unknown member":   change("admin", true),
		"another case":        raw(`"endpoint"`, `"Endpoint"`),
		"a member twice":      raw(`"epoch":7`, `"epoch":7,"epoch":7`),
		"given twice":         raw(`"instance":{`, `"instance":{"endpoint":"svc_a","name":"`+aUID+`","epoch":7,"credentialId":"own-7"},"instance":{`),
		"a negative epoch":    change("epoch", -1),
		"an epoch as text":    change("epoch", "7"),
		"a fraction":          change("epoch", 7.5),
		"an exponent":         raw(`"epoch":7`, `"epoch":7e0`),
		"an endless epoch":    raw(`"epoch":7`, `"epoch":7000000000000000`),
		"a dotted endpoint":   change("endpoint", "a.b"),
		"a short name":        change("name", "one"),
		"outside of act":      with(goodClaims(), "instance", good),
		"a dotted credential": change("credentialId", "a.b"),
	} {
		if b, err := ring.Verify(f.sign(f.header(), claims), noon); !errors.Is(err, messages.ProofInvalid) || !b.Principal.IsZero() {
			t.Errorf("%s: got %+v, %v", what, b, err)
		}
	}
}
