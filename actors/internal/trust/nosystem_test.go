package trust_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// Where the servers are somebody else's, nothing of SYS is read: it may be missing,
// or be there and be anything.
func TestWithoutSystemItsKeysDoNotMatter(t *testing.T) {
	good := injected(t, create(t, trust.Options{}))
	const observer, evictor = "sys-observer.seed", "sys-evictor.seed"
	for name, change := range map[string]func(trust.Injected){
		"they are there":       func(trust.Injected) {},
		"they are missing":     func(s trust.Injected) { delete(s, observer); delete(s, evictor) },
		"one of them is":       func(s trust.Injected) { delete(s, evictor) },
		"they are garbled":     func(s trust.Injected) { s[observer], s[evictor] = messages.NewSecret("x"), messages.NewSecret("y") },
		"the account is, also": func(s trust.Injected) { delete(s, observer); delete(s, evictor); withoutAccount(t, s, "SYS") },
	} {
		t.Run(name, func(t *testing.T) {
			store := maps.Clone(good)
			change(store)
			m, err := trust.LoadWithoutSystem(t.Context(), store, "acme")
			if err != nil {
				t.Fatal(err)
			}
			if m.Observer != (trust.Key{}) || m.Evictor != (trust.Key{}) || m.Account(trust.SYS) != "" {
				t.Error("it has something of SYS")
			}
			if len(m.Accounts) != 4 || len(m.Signing) != 4 || len(m.Callouts) != 4 || m.XKey.Public == "" {
				t.Error("something else is missing")
			}
			if _, err := m.MintOwn(trust.OwnUser{Account: trust.SYS, Subject: userKey(t), Name: names.NewUID()}); !errors.Is(err, messages.InternalFault) {
				t.Errorf("it mints in SYS: %v", err)
			}
			_, err = trust.Load(t.Context(), store, "acme")
			if whole := name == "they are there"; (err == nil) != whole || !whole && !errors.Is(err, messages.KeysUnusable) {
				t.Errorf("with a way into SYS: %v", err)
			}
		})
	}
}

// What is not of SYS is needed all the same.
func TestWithoutSystemTheRestIsRequired(t *testing.T) {
	good := injected(t, create(t, trust.Options{}))
	for name := range good {
		if strings.HasPrefix(name, "sys-") {
			continue
		}
		store := maps.Clone(good)
		delete(store, name)
		if _, err := trust.LoadWithoutSystem(t.Context(), store, "acme"); !errors.Is(err, messages.KeysUnusable) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	for _, account := range []string{"AUTH", "DATA", "CTRL", "SVC"} {
		store := maps.Clone(good)
		withoutAccount(t, store, account)
		if _, err := trust.LoadWithoutSystem(t.Context(), store, "acme"); !errors.Is(err, messages.KeysUnusable) || !strings.Contains(err.Error(), account) {
			t.Errorf("without %s: %v", account, err)
		}
	}
}

// withoutAccount takes an account out of the chain's document.
func withoutAccount(t *testing.T, store trust.Injected, account string) {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(store["chain.json"].Reveal()), &doc); err != nil {
		t.Fatal(err)
	}
	delete(accountsOf(doc), account)
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	store["chain.json"] = messages.NewSecret(string(text))
}
