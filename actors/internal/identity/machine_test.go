package identity_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

func TestActorToken(t *testing.T) {
	token, hash := identity.NewActorToken()
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`).MatchString(token.Reveal()) || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(hash) {
		t.Fatal("the token or its hash has the wrong shape")
	}
	other, _ := identity.NewActorToken()
	for _, c := range []struct {
		what, hash, presented string
		want                  bool
	}{
		{"the token", hash, token.Reveal(), true},
		{"another token", hash, other.Reveal(), false},
		{"nothing", hash, "", false},
		{"the hash itself", hash, hash, false},
		{"a longer token", hash, token.Reveal() + "=", false},
		{"an upper-case hash", strings.ToUpper(hash), token.Reveal(), false},
		{"no hash", "", token.Reveal(), false},
		{"no hash and nothing", "", "", false},
		{"a torn hash", hash[:63], token.Reveal(), false},
	} {
		if identity.CheckActorToken(c.hash, c.presented) != c.want {
			t.Errorf("%s: not %v", c.what, c.want)
		}
	}
	// The hash is over the characters, not over what they encode.
	if !identity.CheckActorToken("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc") {
		t.Error("SHA-256 of abc does not fit abc")
	}
}

func TestCapability(t *testing.T) {
	capability := identity.NewCapability()
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(capability.Reveal()) {
		t.Fatal("the capability has the wrong shape")
	}
	if !identity.CheckCapability(capability, capability.Reveal()) {
		t.Error("it does not fit itself")
	}
	for _, presented := range []string{"", strings.ToUpper(capability.Reveal()), capability.Reveal()[1:], identity.NewCapability().Reveal()} {
		if identity.CheckCapability(capability, presented) {
			t.Error("another one fits")
		}
	}
	if identity.CheckCapability(messages.Secret{}, "") {
		t.Error("nothing fits an absent capability")
	}
}
