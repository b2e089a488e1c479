package identity_test

import (
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

// newKeyring makes and opens the first keyring of space main, and gives its document.
func newKeyring(t testing.TB) (*identity.Keyring, messages.Secret) {
	t.Helper()
	stored, err := identity.GenerateKeyring("main", noon)
	must(t, stored, err)
	return open(t, stored), stored
}

func open(t testing.TB, stored messages.Secret) *identity.Keyring {
	t.Helper()
	ring, err := identity.OpenKeyring("main", stored)
	return must(t, ring, err)
}

// privateKeys reads the private halves out of a document, by key id.
func privateKeys(t testing.TB, stored messages.Secret) map[string]ed25519.PrivateKey {
	t.Helper()
	var doc struct {
		Keys []struct{ KID, D string }
	}
	if err := json.Unmarshal([]byte(stored.Reveal()), &doc); err != nil {
		t.Fatal(err)
	}
	keys := map[string]ed25519.PrivateKey{}
	for _, key := range doc.Keys {
		seed, err := base64.RawURLEncoding.DecodeString(key.D)
		if must(t, seed, err); len(seed) == ed25519.SeedSize {
			keys[key.KID] = ed25519.NewKeyFromSeed(seed)
		}
	}
	return keys
}

func TestKeyringKeepsItsKeys(t *testing.T) {
	ring, stored := newKeyring(t)
	token, err := ring.Sign(sample())
	must(t, token, err)
	again := open(t, stored)
	if _, err := again.Verify(token.Reveal(), noon); err != nil {
		t.Errorf("a bearer does not survive a restart: %v", err)
	}
	if string(ring.JWKS()) != string(again.JWKS()) || ring.Space() != "main" {
		t.Error("the keyring changed on its way through the document")
	}
}

func TestJWKSIsPublicAndRight(t *testing.T) {
	ring, stored := newKeyring(t)
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(ring.JWKS(), &set); err != nil {
		t.Fatal(err)
	}
	if len(set.Keys) != 1 || !set.Keys[0].IsPublic() || set.Keys[0].Algorithm != "EdDSA" || set.Keys[0].Use != "sig" {
		t.Fatalf("%s", ring.JWKS())
	}
	sum, err := set.Keys[0].Thumbprint(crypto.SHA256)
	if kid := base64.RawURLEncoding.EncodeToString(must(t, sum, err)); kid != set.Keys[0].KeyID || kid != ring.Keys()[0].KID {
		t.Errorf("kid %s is not the thumbprint %s", set.Keys[0].KeyID, kid)
	}
	for kid, private := range privateKeys(t, stored) {
		if strings.Contains(string(ring.JWKS()), base64.RawURLEncoding.EncodeToString(private.Seed())) {
			t.Errorf("the JWKS shows the private half of %s", kid)
		}
	}
}

func TestOpenKeyringRefusals(t *testing.T) {
	_, stored := newKeyring(t)
	text := stored.Reveal()
	kid := open(t, stored).Keys()[0].KID
	replace := func(old, by string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("the document has no %s", old)
		}
		return strings.Replace(text, old, by, 1)
	}
	flipped := "A" + kid[1:]
	if kid[0] == 'A' {
		flipped = "B" + kid[1:]
	}
	_, other := newKeyring(t)
	var foreign string
	for _, private := range privateKeys(t, other) {
		foreign = base64.RawURLEncoding.EncodeToString(private.Seed())
	}
	var own string
	for _, private := range privateKeys(t, stored) {
		own = base64.RawURLEncoding.EncodeToString(private.Seed())
	}
	for _, c := range []struct {
		what, space, doc string
		want             messages.Error
	}{
		{"another space", "other", text, messages.KeyringForeign},
		{"a space that is none", "../main", text, messages.Malformed},
		{"nothing", "main", "", messages.KeyringDamaged},
		{"torn", "main", text[:len(text)/2], messages.KeyringDamaged},
		{"bytes behind", "main", text + "{}", messages.KeyringDamaged},
		{"kid altered", "main", replace(`"kid": "`+kid, `"kid": "`+flipped), messages.KeyringDamaged},
		{"private half of another key", "main", replace(own, foreign), messages.KeyringDamaged},
		{"no private half", "main", replace(own, ""), messages.KeyringDamaged},
		{"unknown version", "main", replace(`"v": 1`, `"v": 2`), messages.KeyringDamaged},
		{"unknown member", "main", replace(`"v": 1`, `"v": 1, "w": 1`), messages.KeyringDamaged},
		{"member twice", "main", replace(`"v": 1`, `"v": 1, "v": 1`), messages.KeyringDamaged},
		{"member missing", "main", replace(`"v": 1,`, ``), messages.KeyringDamaged},
		{"unknown state", "main", replace(`"active"`, `"asleep"`), messages.KeyringDamaged},
		{"none active", "main", replace(`"active"`, `"published"`), messages.KeyringDamaged},
		{"retired with its private half", "main", replace(`"active"`, `"retired"`), messages.KeyringDamaged},
		{"active since never", "main", replace(fmt.Sprintf(`"activatedAt": %d`, noon.Unix()), `"activatedAt": 0`), messages.KeyringDamaged},
		{"superseded and active", "main", replace(`"supersededAt": 0`, `"supersededAt": 1`), messages.KeyringDamaged},
		{"a fraction for a time", "main", replace(`"retiredAt": 0`, `"retiredAt": 0.5`), messages.KeyringDamaged},
		{"no keys", "main", `{"v":1,"space":"main","keys":[]}`, messages.KeyringDamaged},
		{"too large", "main", text + strings.Repeat(" ", 1<<16), messages.KeyringDamaged},
	} {
		ring, err := identity.OpenKeyring(c.space, secret(c.doc))
		if ring != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: got %v", c.what, err)
		}
		if err != nil && (strings.Contains(err.Error(), own) || strings.Contains(err.Error(), foreign)) {
			t.Errorf("%s: the error tells a secret", c.what)
		}
	}
	if _, err := identity.GenerateKeyring("No Space", noon); !errors.Is(err, messages.Malformed) {
		t.Errorf("a keyring for a space that is none: %v", err)
	}
}

func FuzzOpenKeyring(f *testing.F) {
	stored, _ := identity.GenerateKeyring("main", noon)
	f.Add(stored.Reveal())
	f.Add(`{"v":1,"space":"main","keys":[{}]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		ring, err := identity.OpenKeyring("main", secret(doc))
		if err != nil {
			return
		}
		b := sample()
		token, err := ring.Sign(b)
		if must(t, token, err); !same(b, mustVerify(t, ring, token, noon)) {
			t.Fatal("an opened keyring does not verify what it signs")
		}
		if _, err := ring.Rotate(noon.Add(time.Hour)); err != nil && !errors.Is(err, messages.KeyInUse) {
			t.Fatal(err)
		}
	})
}
