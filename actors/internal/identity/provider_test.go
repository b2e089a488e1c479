package identity_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

const (
	anIssuer   = "https://idp.example.test"
	anAudience = "cotal-main"
)

// providerKey is one key of a provider that a test plays.
type providerKey struct {
	kid, algorithm string
	private        crypto.Signer
}

func edKey(t testing.TB, kid string) providerKey {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	return providerKey{kid, "EdDSA", must(t, private, err)}
}

func ecKey(t testing.TB, kid string) providerKey {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return providerKey{kid, "ES256", must(t, private, err)}
}

func rsaKey(t testing.TB, kid, algorithm string, bits int) providerKey {
	private, err := rsa.GenerateKey(rand.Reader, bits)
	return providerKey{kid, algorithm, must(t, private, err)}
}

// sign makes a token over any payload, with more header members if wanted.
func (k providerKey) sign(t testing.TB, payload string, more map[jose.HeaderKey]any) string {
	t.Helper()
	options := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{}}
	if k.kid != "" {
		options.ExtraHeaders["kid"] = k.kid
	}
	maps.Copy(options.ExtraHeaders, more)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(k.algorithm), Key: k.private}, options)
	jws, err := must(t, signer, err).Sign([]byte(payload))
	token, err := must(t, jws, err).CompactSerialize()
	return must(t, token, err)
}

func jwks(t testing.TB, keys ...providerKey) []byte {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, key := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.private.Public(), KeyID: key.kid, Use: "sig"})
	}
	document, err := json.Marshal(set)
	return must(t, document, err)
}

// proofClaims are what a provider's good token says.
func proofClaims() map[string]any {
	return map[string]any{"iss": anIssuer, "aud": anAudience, "sub": "human-42", "iat": noon.Unix(), "exp": noon.Unix() + 3600, "email": "x@example.test"}
}

func text(claims map[string]any) string {
	raw, _ := json.Marshal(claims)
	return string(raw)
}

func pinned(t testing.TB, algorithms []string, keys ...providerKey) *identity.Provider {
	t.Helper()
	p, err := identity.NewProvider(identity.ProviderConfig{Issuer: anIssuer, Audience: anAudience, Algorithms: algorithms,
		JWKS: jwks(t, keys...), Now: func() time.Time { return noon }})
	return must(t, p, err)
}

func TestProviderAlgorithms(t *testing.T) {
	keys := []providerKey{edKey(t, "ed"), ecKey(t, "ec"), rsaKey(t, "rs", "RS256", 2048), rsaKey(t, "ps", "PS256", 2048)}
	for _, key := range keys {
		token := key.sign(t, text(proofClaims()), nil)
		for _, algorithm := range identity.Algorithms() {
			subject, err := pinned(t, []string{algorithm}, keys...).Verify(t.Context(), token)
			if algorithm != key.algorithm {
				if !errors.Is(err, messages.ProofInvalid) {
					t.Errorf("%s passes where only %s may: %v", key.algorithm, algorithm, err)
				}
				continue
			}
			want := identity.Subject{Issuer: anIssuer, Subject: "human-42", Expires: noon.Add(time.Hour)}
			if err != nil || subject != want {
				t.Errorf("%s: got %+v, %v", algorithm, subject, err)
			}
		}
	}
}

func TestProviderKeyMustFit(t *testing.T) {
	ed, ec, rs := edKey(t, "ed"), ecKey(t, "ec"), rsaKey(t, "rs", "RS256", 2048)
	weak := rsaKey(t, "weak", "RS256", 1024)
	stranger := edKey(t, "ed")
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, p384, err)
	p := pinned(t, nil, ed, ec, rs, weak)
	claims := text(proofClaims())
	named := func(key providerKey, kid string) providerKey { key.kid = kid; return key }
	for _, c := range []struct {
		what, token string
		want        error
	}{
		{"good", ed.sign(t, claims, nil), nil},
		{"a stranger's key under a known kid", stranger.sign(t, claims, nil), messages.ProofInvalid},
		{"unknown kid", named(ed, "nobody").sign(t, claims, nil), messages.ProofInvalid},
		{"kid of a key of another kind", named(ed, "ec").sign(t, claims, nil), messages.ProofInvalid},
		{"no kid, one key fits", named(ed, "").sign(t, claims, nil), nil},
		{"RSA key under 2,048 bits", weak.sign(t, claims, nil), messages.ProofInvalid},
		{"ES384", providerKey{"ec", "ES384", p384}.sign(t, claims, nil), messages.ProofInvalid},
	} {
		if _, err := p.Verify(t.Context(), c.token); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", c.what, err, c.want)
		}
	}
	two := pinned(t, nil, ed, edKey(t, "other"))
	if _, err := two.Verify(t.Context(), named(ed, "").sign(t, claims, nil)); !errors.Is(err, messages.ProofInvalid) {
		t.Errorf("no kid and two keys that fit: %v", err)
	}
}

func TestProviderHeader(t *testing.T) {
	key := edKey(t, "ed")
	p := pinned(t, nil, key)
	claims := text(proofClaims())
	with := func(name jose.HeaderKey, value any) string {
		return key.sign(t, claims, map[jose.HeaderKey]any{name: value})
	}
	good := key.sign(t, claims, nil)
	parts := strings.Split(good, ".")
	shared, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(key.private.Public().(ed25519.PublicKey))}, nil)
	forged, err := must(t, shared, err).Sign([]byte(claims))
	hmac, err := must(t, forged, err).CompactSerialize()
	must(t, hmac, err)
	for _, c := range []struct {
		what, token string
		want        error
	}{
		{"typ JWT", with("typ", "JWT"), nil},
		{"harmless member", with("x5t", "AAAA"), nil},
		{"typ of an access token", with("typ", "at+jwt"), messages.ProofInvalid},
		{"typ of a logout token", with("typ", "logout+jwt"), messages.ProofInvalid},
		{"none", encode(`{"alg":"none"}`) + "." + parts[1] + ".", messages.ProofInvalid},
		{"HS256 over the public key", hmac, messages.ProofInvalid},
		{"no alg", encode(`{"kid":"ed"}`) + "." + parts[1] + "." + parts[2], messages.ProofInvalid},
		{"alg twice", encode(`{"alg":"none","alg":"EdDSA","kid":"ed"}`) + "." + parts[1] + "." + parts[2], messages.ProofInvalid},
		{"nothing", "", messages.ProofMissing},
		{"garbage", "garbage", messages.ProofInvalid},
		{"dots", "..", messages.ProofInvalid},
		{"JSON form", `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, messages.ProofInvalid},
		{"payload altered", parts[0] + "." + encode(strings.Replace(claims, "human-42", "human-43", 1)) + "." + parts[2], messages.ProofInvalid},
		{"too large", good + strings.Repeat("A", 16<<10), messages.ProofInvalid},
	} {
		if _, err := p.Verify(t.Context(), c.token); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", c.what, err, c.want)
		}
	}
}

// A token that brings a key of its own, points at one, or changes how it is to be
// read is refused for that alone, whatever the signature.
func TestProviderRefusesHeadersThatSteer(t *testing.T) {
	key := edKey(t, "ed")
	p := pinned(t, nil, key)
	forge := forger{"ed", key.private.(ed25519.PrivateKey)}
	for _, member := range []string{`"jku":"https://evil.test/jwks"`, `"jwk":{"kty":"OKP"}`, `"x5u":"https://evil.test"`, `"x5c":["AA"]`, `"crit":["exp"]`, `"b64":true`} {
		token := forge.sign(`{"alg":"EdDSA","kid":"nobody",`+member+`}`, text(proofClaims()))
		if _, err := p.Verify(t.Context(), token); !errors.Is(err, messages.ProofInvalid) || !strings.HasSuffix(err.Error(), ": refused") {
			t.Errorf("%s: got %v", member, err)
		}
	}
	if _, err := p.Verify(t.Context(), forge.sign(`{"alg":"EdDSA","kid":"ed","x5t":"AAAA"}`, text(proofClaims()))); err != nil {
		t.Errorf("the forger's own tokens do not verify: %v", err)
	}
}

func TestProviderClaims(t *testing.T) {
	key := edKey(t, "ed")
	p := pinned(t, nil, key)
	now := noon.Unix()
	claim := func(name string, value any) string { return text(with(proofClaims(), name, value)) }
	raw := func(old, by string) string {
		all := text(proofClaims())
		if !strings.Contains(all, old) {
			t.Fatalf("no %s in %s", old, all)
		}
		return strings.Replace(all, old, by, 1)
	}
	for _, c := range []struct {
		what, payload string
		want          error
	}{
		{"aud a list of one", claim("aud", []string{anAudience}), nil},
		{"aud a list of two with ours", claim("aud", []string{anAudience, "other"}), messages.ProofInvalid},
		{"aud ours twice", claim("aud", []string{anAudience, anAudience}), messages.ProofInvalid},
		{"aud an empty list", claim("aud", []string{}), messages.ProofInvalid},
		{"aud of another client", claim("aud", "other"), messages.ProofInvalid},
		{"aud in another case", claim("aud", "Cotal-Main"), messages.ProofInvalid},
		{"aud a number", claim("aud", 1), messages.ProofInvalid},
		{"no aud", claim("aud", nil), messages.ProofInvalid},
		{"iss with a slash", claim("iss", anIssuer+"/"), messages.ProofInvalid},
		{"iss without its scheme", claim("iss", "idp.example.test"), messages.ProofInvalid},
		{"no iss", claim("iss", nil), messages.ProofInvalid},
		{"iat 4 s ahead", claim("iat", now+4), nil},
		{"iat 6 s ahead", claim("iat", now+6), messages.ProofInvalid},
		{"no iat", claim("iat", nil), messages.ProofInvalid},
		{"iat text", claim("iat", "1"), messages.ProofInvalid},
		{"nbf 4 s ahead", claim("nbf", now+4), nil},
		{"nbf 6 s ahead", claim("nbf", now+6), messages.ProofInvalid},
		{"exp 3 s ago", claim("exp", now-3), nil},
		{"exp 5 s ago", claim("exp", now-5), messages.ProofExpired},
		{"no exp", claim("exp", nil), messages.ProofInvalid},
		{"exp null", raw(`"exp":`, `"exp":null,"x":`), messages.ProofInvalid},
		{"exp text", claim("exp", "1800000000"), messages.ProofInvalid},
		{"exp beyond all time", raw(`"exp":`, `"exp":1e300,"x":`), messages.ProofInvalid},
		{"exp negative", claim("exp", -1), messages.ProofInvalid},
		{"no sub", claim("sub", nil), messages.ProofInvalid},
		{"sub a number", claim("sub", 42), messages.ProofInvalid},
		{"sub empty", claim("sub", ""), messages.ProofInvalid},
		{"sub too long", claim("sub", strings.Repeat("x", 1025)), messages.ProofInvalid},
		{"sub with a broken surrogate", raw(`human-42`, `human\ud800`), messages.ProofInvalid},
		{"sub not UTF-8", raw(`human-42`, "human\xff"), messages.ProofInvalid},
		{"sub twice", raw(`"sub":`, `"sub":"human-1","sub":`), messages.ProofInvalid},
		{"not an object", `["x"]`, messages.ProofInvalid},
		{"not JSON", `x`, messages.ProofInvalid},
	} {
		subject, err := p.Verify(t.Context(), key.sign(t, c.payload, nil))
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", c.what, err, c.want)
		}
		if err != nil && subject != (identity.Subject{}) {
			t.Errorf("%s: a refusal names a subject", c.what)
		}
	}
	subject, err := p.Verify(t.Context(), key.sign(t, claim("exp", float64(now)+60.9), nil))
	if err != nil || !subject.Expires.Equal(noon.Add(time.Minute)) {
		t.Errorf("a fraction is not dropped: %s, %v", subject.Expires, err)
	}
}

// A provider that the library makes an exception for gets none here.
func TestProviderIssuerHasNoExceptions(t *testing.T) {
	key := edKey(t, "ed")
	p, err := identity.NewProvider(identity.ProviderConfig{Issuer: "https://accounts.google.com", Audience: anAudience,
		JWKS: jwks(t, key), Now: func() time.Time { return noon }})
	must(t, p, err)
	token := key.sign(t, text(with(proofClaims(), "iss", "accounts.google.com")), nil)
	if _, err := p.Verify(t.Context(), token); !errors.Is(err, messages.ProofInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestProviderConfigRefusals(t *testing.T) {
	good := identity.ProviderConfig{Issuer: anIssuer, Audience: anAudience}
	for what, spoil := range map[string]func(*identity.ProviderConfig){
		"no issuer":              func(c *identity.ProviderConfig) { c.Issuer = "" },
		"no audience":            func(c *identity.ProviderConfig) { c.Audience = "" },
		"HS256":                  func(c *identity.ProviderConfig) { c.Algorithms = []string{"HS256"} },
		"none":                   func(c *identity.ProviderConfig) { c.Algorithms = []string{"EdDSA", "none"} },
		"http":                   func(c *identity.ProviderConfig) { c.Issuer = "http://idp.example.test" },
		"localhost by name":      func(c *identity.ProviderConfig) { c.Issuer = "http://localhost:1" },
		"loopback, other scheme": func(c *identity.ProviderConfig) { c.Issuer = "ftp://127.0.0.1" },
		"loopback as a prefix":   func(c *identity.ProviderConfig) { c.Issuer = "http://127.0.0.1.evil.test" },
		"credentials in the URL": func(c *identity.ProviderConfig) { c.JWKSURL = "https://u:p@idp.example.test" },
		"no URL":                 func(c *identity.ProviderConfig) { c.Issuer = "idp" },
		"http for the keys":      func(c *identity.ProviderConfig) { c.JWKSURL = "http://idp.example.test/jwks" },
		"keys pinned twice":      func(c *identity.ProviderConfig) { c.JWKSURL, c.JWKS = "https://x.test", jwks(t, edKey(t, "ed")) },
		"pinned keys broken":     func(c *identity.ProviderConfig) { c.JWKS = []byte("{") },
		"pinned keys empty":      func(c *identity.ProviderConfig) { c.JWKS = []byte(`{"keys":[]}`) },
		"a shared secret pinned": func(c *identity.ProviderConfig) { c.JWKS = []byte(`{"keys":[{"kty":"oct","k":"AAAA"}]}`) },
		"negative timeout":       func(c *identity.ProviderConfig) { c.Timeout = -1 },
	} {
		config := good
		spoil(&config)
		if p, err := identity.NewProvider(config); !errors.Is(err, messages.Malformed) || p != nil {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for _, issuer := range []string{anIssuer, "http://127.0.0.1:1", "http://[::1]:1", "http://127.9.9.9"} {
		if _, err := identity.NewProvider(identity.ProviderConfig{Issuer: issuer, Audience: anAudience}); err != nil {
			t.Errorf("%s is refused: %v", issuer, err)
		}
	}
	if _, err := identity.NewProvider(identity.ProviderConfig{Algorithms: []string{"HS256"}, Timeout: -1}); err == nil ||
		!strings.Contains(err.Error(), "issuer") || !strings.Contains(err.Error(), "audience") || !strings.Contains(err.Error(), "HS256") || !strings.Contains(err.Error(), "negative") {
		t.Errorf("not every problem is listed: %v", err)
	}
}

func FuzzProviderVerify(f *testing.F) {
	key := edKey(f, "ed")
	p := pinned(f, nil, key)
	f.Add(`{"alg":"EdDSA","kid":"ed"}`, text(proofClaims()), true)
	f.Add(`{"alg":"none"}`, `{}`, false)
	forge := forger{"ed", key.private.(ed25519.PrivateKey)}
	f.Fuzz(func(t *testing.T, header, payload string, signed bool) {
		token := header + "." + payload
		if signed {
			token = forge.sign(header, payload)
		}
		subject, err := p.Verify(t.Context(), token)
		if err != nil {
			if messages.Describe(err).Code != messages.Unauthenticated {
				t.Fatalf("a refusal of another kind: %v", err)
			}
			return
		}
		if !signed {
			t.Fatal("an unsigned token verifies")
		}
		if _, err := identity.Owner(ownerSecret, subject.Issuer, subject.Subject); err != nil {
			t.Fatalf("a verified subject has no owner: %v", err)
		}
	})
}
