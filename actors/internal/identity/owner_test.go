package identity_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

var ownerSecret = messages.NewSecret(strings.Repeat("s", 32))

func TestOwnerKnownAnswers(t *testing.T) {
	for _, c := range []struct{ issuer, subject, owner string }{
		{"https://idp.example.test", "human-42", "u_7ddcihobiesn4x46pu2mxn2qee"},
		{"a", "b|c", "u_cczjneaswzwb7o6e2l6ozl2hui"},
		{"a|b", "c", "u_dlpro2wra4r43p7peznxg6rz3i"},
		{"https://idp.example.test", "a<b>&c", "u_3a3q4e3sydveexzsqpjnatudle"},
		{"https://idp.example.test", "caf\u00e9", "u_fxajh7tv2xrnsu5umzvzn2twb4"},
		{"https://idp.example.test", "x\u2028y", "u_6joqei2ccxfpqkhrz2m3mw2i4e"},
		{"https://idp.example.test", `q"\z`, "u_w4k4z34lgrdd4znp6vdbxd36te"},
	} {
		owner, err := identity.Owner(ownerSecret, c.issuer, c.subject)
		if err != nil || owner != c.owner {
			t.Errorf("%q at %q: got %s, %v, want %s", c.subject, c.issuer, owner, err, c.owner)
		}
	}
}

func TestOwnerRefusals(t *testing.T) {
	for _, c := range []struct {
		what, secret, issuer, subject string
		want                          messages.Error
	}{
		{"secret of 31 bytes", strings.Repeat("s", 31), "i", "s", messages.OwnerSecretDamaged},
		{"no secret", "", "i", "s", messages.OwnerSecretDamaged},
		{"no issuer", ownerSecret.Reveal(), "", "s", messages.Malformed},
		{"no subject", ownerSecret.Reveal(), "i", "", messages.Malformed},
		{"broken UTF-8 in the subject", ownerSecret.Reveal(), "i", "a\xffb", messages.Malformed},
		{"broken UTF-8 in the issuer", ownerSecret.Reveal(), "a\xffb", "s", messages.Malformed},
		{"what broken text decodes to", ownerSecret.Reveal(), "i", "a\ufffdb", messages.Malformed},
		{"a subject above 1 KiB", ownerSecret.Reveal(), "i", strings.Repeat("x", 1025), messages.Malformed},
	} {
		if owner, err := identity.Owner(secret(c.secret), c.issuer, c.subject); !errors.Is(err, c.want) || owner != "" {
			t.Errorf("%s: got %q, %v", c.what, owner, err)
		}
	}
	if _, err := identity.Owner(secret(strings.Repeat("s", 32)), "i", "s"); err != nil {
		t.Errorf("32 bytes: %v", err)
	}
}

func TestOwnerDependsOnEverything(t *testing.T) {
	of := func(secret messages.Secret, issuer, subject string) string {
		owner, err := identity.Owner(secret, issuer, subject)
		return must(t, owner, err)
	}
	base := of(ownerSecret, "i", "s")
	if base != of(ownerSecret, "i", "s") {
		t.Error("the same person has two owners")
	}
	if base == of(ownerSecret, "j", "s") || base == of(ownerSecret, "i", "t") || base == of(identity.NewOwnerSecret(), "i", "s") {
		t.Error("issuer, subject and secret must each make another owner")
	}
}

func TestOwnerIsAlwaysAName(t *testing.T) {
	text := rapid.StringN(1, 80, -1).Filter(func(s string) bool { return !strings.ContainsRune(s, '\ufffd') })
	rapid.Check(t, func(t *rapid.T) {
		owner, err := identity.Owner(ownerSecret, text.Draw(t, "issuer"), text.Draw(t, "subject"))
		if err != nil {
			t.Fatal(err)
		}
		if names.CheckOwner(owner) != nil || !strings.HasPrefix(owner, "u_") || !strings.Contains("aeimquy4", owner[27:]) {
			t.Fatalf("%q is no owner", owner)
		}
	})
}

func FuzzOwner(f *testing.F) {
	f.Add("https://idp.example.test", "human-42")
	f.Add("a", "b|c\x00\u2028\"")
	f.Fuzz(func(t *testing.T, issuer, subject string) {
		owner, err := identity.Owner(ownerSecret, issuer, subject)
		if err == nil && names.CheckOwner(owner) != nil {
			t.Fatalf("%q", owner)
		}
	})
}
