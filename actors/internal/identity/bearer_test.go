package identity_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

const (
	anOwner = "u_7ddcihobiesn4x46pu2mxn2qee"
	aUID    = "0123456789abcdefghijklmnop"
)

// sample is a bearer that says everything a bearer can.
func sample() identity.Bearer {
	return identity.Bearer{
		Principal: messages.Principal{Owner: anOwner, Actor: "laptop"}, Scope: []string{"chat:read", "spawn"},
		Parent: messages.Principal{Owner: anOwner, Actor: "desk"}, UID: aUID, CredentialID: "root-1", Profile: "narrow",
		IssuedAt: noon, Expires: noon.Add(10 * time.Minute),
	}
}

func same(a, b identity.Bearer) bool {
	return a.Principal == b.Principal && a.Parent == b.Parent && slices.Equal(a.Scope, b.Scope) && a.UID == b.UID &&
		a.CredentialID == b.CredentialID && a.Profile == b.Profile && a.Process == b.Process && a.IssuedAt.Equal(b.IssuedAt) && a.Expires.Equal(b.Expires)
}

func mustVerify(t testing.TB, ring *identity.Keyring, token messages.Secret, now time.Time) identity.Bearer {
	t.Helper()
	b, err := ring.Verify(token.Reveal(), now)
	return must(t, b, err)
}

// forger signs whatever it is told with the active key of a keyring.
type forger struct {
	kid string
	key ed25519.PrivateKey
}

func newForger(t testing.TB, ring *identity.Keyring, stored messages.Secret) forger {
	kid := ring.Keys()[0].KID
	return forger{kid, privateKeys(t, stored)[kid]}
}

func (f forger) header() map[string]any {
	return map[string]any{"alg": "EdDSA", "typ": "at+jwt", "kid": f.kid}
}

func (f forger) sign(header, payload any) string {
	text := encode(header) + "." + encode(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(f.key, []byte(text)))
}

// encode gives base64url of a value's JSON, or of a string as it is.
func encode(value any) string {
	raw, isText := value.(string)
	if !isText {
		text, _ := json.Marshal(value)
		raw = string(text)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(raw))
}

// goodClaims is what sample says, in JSON.
func goodClaims() map[string]any {
	return map[string]any{
		"iss": "urn:cotal:auth:main", "aud": "main", "sub": anOwner, "ver": 1,
		"iat": noon.Unix(), "nbf": noon.Unix(), "exp": noon.Unix() + 600,
		"act": map[string]any{"owner": anOwner, "actor": "laptop", "scope": []string{"chat:read", "spawn"},
			"parent": anOwner + ".desk", "uid": aUID, "credentialId": "root-1", "profile": "narrow"},
	}
}

// with changes one member; a nil value removes it. `act.x` reaches inside.
func with(claims map[string]any, member string, value any) map[string]any {
	changed := maps.Clone(claims)
	target := changed
	if inner, found := strings.CutPrefix(member, "act."); found {
		target = maps.Clone(changed["act"].(map[string]any))
		changed["act"], member = target, inner
	}
	if target[member] = value; value == nil {
		delete(target, member)
	}
	return changed
}

func TestBearerRoundTrip(t *testing.T) {
	ring, _ := newKeyring(t)
	for what, change := range map[string]func(*identity.Bearer){
		"everything":    func(*identity.Bearer) {},
		"no scope":      func(b *identity.Bearer) { b.Scope = nil },
		"no parent":     func(b *identity.Bearer) { b.Parent = messages.Principal{} },
		"no profile":    func(b *identity.Bearer) { b.Profile = "" },
		"900 seconds":   func(b *identity.Bearer) { b.Expires = noon.Add(identity.MaxBearerLife) },
		"a platform":    func(b *identity.Bearer) { b.Principal.Owner = "p" + anOwner[1:] },
		"longest scope": func(b *identity.Bearer) { b.Scope = slices.Repeat([]string{strings.Repeat("s", 64)}, 128) },
	} {
		b := sample()
		change(&b)
		token, err := ring.Sign(b)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if got := mustVerify(t, ring, token, noon); !same(got, b) {
			t.Errorf("%s: got %+v, want %+v", what, got, b)
		}
	}
}

func TestBearerWireForm(t *testing.T) {
	ring, stored := newKeyring(t)
	token, err := ring.Sign(sample())
	parts := strings.Split(must(t, token, err).Reveal(), ".")
	read := func(part string) (m map[string]any) {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		if err := errors.Join(err, json.Unmarshal(raw, &m)); err != nil {
			t.Fatal(err)
		}
		return m
	}
	if got, want := read(parts[0]), newForger(t, ring, stored).header(); !maps.Equal(got, want) {
		t.Errorf("header %v, want %v", got, want)
	}
	if got, want := fmt.Sprint(read(parts[1])), fmt.Sprint(read(encode(goodClaims()))); got != want {
		t.Errorf("claims %v, want %v", got, want)
	}
	b := sample()
	b.Scope, b.Parent, b.Profile = nil, messages.Principal{}, ""
	token, err = ring.Sign(b)
	act := read(strings.Split(must(t, token, err).Reveal(), ".")[1])["act"].(map[string]any)
	if scope, isList := act["scope"].([]any); len(act) != 5 || !isList || len(scope) != 0 {
		t.Errorf("what is empty must be left out, save the scope: %v", act)
	}
	b.IssuedAt, b.Expires = noon.Add(900*time.Millisecond), noon.Add(2*time.Minute+900*time.Millisecond)
	token, err = ring.Sign(b)
	if got := mustVerify(t, ring, must(t, token, err), noon); !got.Expires.Equal(noon.Add(2 * time.Minute)) {
		t.Errorf("a fraction is not dropped: %s", got.Expires)
	}
}

func TestSignRefusals(t *testing.T) {
	ring, _ := newKeyring(t)
	for what, spoil := range map[string]func(*identity.Bearer){
		"nobody":                  func(b *identity.Bearer) { b.Principal = messages.Principal{} },
		"an nkey for owner":       func(b *identity.Bearer) { b.Principal.Owner = "U" + strings.Repeat("A", 55) },
		"local owner":             func(b *identity.Bearer) { b.Principal.Owner = "local" },
		"dotted actor":            func(b *identity.Bearer) { b.Principal.Actor = "a.b" },
		"parent without actor":    func(b *identity.Bearer) { b.Parent.Actor = "" },
		"parent of an nkey":       func(b *identity.Bearer) { b.Parent.Owner = "U" + strings.Repeat("A", 55) },
		"no uid":                  func(b *identity.Bearer) { b.UID = "" },
		"upper-case uid":          func(b *identity.Bearer) { b.UID = strings.ToUpper(aUID) },
		"no credential":           func(b *identity.Bearer) { b.CredentialID = "" },
		"dotted credential":       func(b *identity.Bearer) { b.CredentialID = "a.b" },
		"malformed profile":       func(b *identity.Bearer) { b.Profile = "a b" },
		"empty scope entry":       func(b *identity.Bearer) { b.Scope = []string{""} },
		"wild scope entry":        func(b *identity.Bearer) { b.Scope = []string{"*"} },
		"long scope entry":        func(b *identity.Bearer) { b.Scope = []string{strings.Repeat("s", 65)} },
		"long scope":              func(b *identity.Bearer) { b.Scope = slices.Repeat([]string{"s"}, 129) },
		"901 seconds":             func(b *identity.Bearer) { b.Expires = noon.Add(901 * time.Second) },
		"no life":                 func(b *identity.Bearer) { b.Expires = noon },
		"negative life":           func(b *identity.Bearer) { b.Expires = noon.Add(-time.Second) },
		"life of a fraction only": func(b *identity.Bearer) { b.Expires = noon.Add(time.Second / 2) },
		"no times":                func(b *identity.Bearer) { b.IssuedAt, b.Expires = time.Time{}, time.Time{}.Add(time.Minute) },
	} {
		b := sample()
		spoil(&b)
		if token, err := ring.Sign(b); !errors.Is(err, messages.Malformed) || !token.IsZero() {
			t.Errorf("%s is signed: %v", what, err)
		}
	}
}

func TestVerifyClaims(t *testing.T) {
	ring, stored := newKeyring(t)
	f := newForger(t, ring, stored)
	now := noon.Unix()
	act := goodClaims()["act"].(map[string]any)
	dated := func(issued, expires any) map[string]any {
		return with(with(with(goodClaims(), "iat", issued), "nbf", issued), "exp", expires)
	}
	raw := func(old, by string) string {
		text, _ := json.Marshal(goodClaims())
		if !strings.Contains(string(text), old) {
			t.Fatalf("no %s in %s", old, text)
		}
		return strings.Replace(string(text), old, by, 1)
	}
	for _, c := range []struct {
		what   string
		claims any
		want   error
	}{
		{"good", goodClaims(), nil},
		{"no scope", with(goodClaims(), "act.scope", nil), nil},
		{"900 s", dated(now, now+900), nil},
		{"901 s", dated(now, now+901), messages.ProofInvalid},
		{"issued 5 s ahead", dated(now+5, now+605), nil},
		{"issued 6 s ahead", dated(now+6, now+606), messages.ProofInvalid},
		{"post-dated, 900 s long", dated(now+10, now+910), messages.ProofInvalid},
		{"expired 4 s ago", dated(now-300, now-4), nil},
		{"expired 5 s ago", dated(now-300, now-5), messages.ProofExpired},
		{"no life", dated(now, now), messages.ProofInvalid},
		{"ends before it begins", dated(now+2, now+1), messages.ProofInvalid},
		{"fraction", dated(now, float64(now)+600.5), messages.ProofInvalid},
		{"exponent", raw(fmt.Sprint(now+600), "1.7672e9"), messages.ProofInvalid},
		{"negative iat", dated(-1, 600), messages.ProofInvalid},
		{"iat as text", dated("1", now+600), messages.ProofInvalid},
		{"exp too long a number", raw(fmt.Sprint(now+600), "9999999999999999999"), messages.ProofInvalid},
		{"no exp", with(goodClaims(), "exp", nil), messages.ProofInvalid},
		{"no iat", with(goodClaims(), "iat", nil), messages.ProofInvalid},
		{"no nbf", with(goodClaims(), "nbf", nil), messages.ProofInvalid},
		{"another nbf", with(goodClaims(), "nbf", now+1), messages.ProofInvalid},
		{"ver 0", with(goodClaims(), "ver", 0), messages.ProofInvalid},
		{"ver 2", with(goodClaims(), "ver", 2), messages.ProofInvalid},
		{"ver text", with(goodClaims(), "ver", "1"), messages.ProofInvalid},
		{"no ver", with(goodClaims(), "ver", nil), messages.ProofInvalid},
		{"other issuer", with(goodClaims(), "iss", "urn:cotal:auth:other"), messages.ProofInvalid},
		{"no issuer", with(goodClaims(), "iss", nil), messages.ProofInvalid},
		{"other audience", with(goodClaims(), "aud", "other"), messages.ProofInvalid},
		{"audience in another case", with(goodClaims(), "aud", "Main"), messages.ProofInvalid},
		{"two audiences", with(goodClaims(), "aud", []string{"main", "other"}), messages.ProofInvalid},
		{"act.owner is not sub", with(goodClaims(), "sub", "u_"+strings.Repeat("a", 26)), messages.ProofInvalid},
		{"sub and owner of an nkey", with(with(goodClaims(), "sub", "UABC"), "act.owner", "UABC"), messages.ProofInvalid},
		{"no act", with(goodClaims(), "act", nil), messages.ProofInvalid},
		{"act null", raw(`"act":{`, `"act":null,"x":{`), messages.ProofInvalid},
		{"act a list", with(goodClaims(), "act", []any{act}), messages.ProofInvalid},
		{"unknown claim", with(goodClaims(), "admin", true), messages.ProofInvalid},
		{"unknown member of act", with(goodClaims(), "act.admin", true), messages.ProofInvalid},
		{"claim in another case", raw(`"sub"`, `"Sub"`), messages.ProofInvalid},
		{"claim twice", raw(`"ver":1`, `"ver":1,"ver":1`), messages.ProofInvalid},
		{"member of act twice", raw(`"actor":"laptop"`, `"actor":"laptop","actor":"laptop"`), messages.ProofInvalid},
		{"claim twice, escaped", raw(`"ver":1`, `"ver":1,"\u0076er":1`), messages.ProofInvalid},
		{"parent of three", with(goodClaims(), "act.parent", anOwner+".a.b"), messages.ProofInvalid},
		{"parent of an nkey", with(goodClaims(), "act.parent", "U"+strings.Repeat("A", 55)+".a"), messages.ProofInvalid},
		{"parent a number", with(goodClaims(), "act.parent", 7), messages.ProofInvalid},
		{"parent empty", with(goodClaims(), "act.parent", ""), messages.ProofInvalid},
		{"profile empty", with(goodClaims(), "act.profile", ""), messages.ProofInvalid},
		{"scope with a number", with(goodClaims(), "act.scope", []any{"a", 1}), messages.ProofInvalid},
		{"scope null", raw(`"scope":[`, `"scope":null,"x":[`), messages.ProofInvalid},
		{"scope a text", with(goodClaims(), "act.scope", "a b"), messages.ProofInvalid},
		{"scope too long", with(goodClaims(), "act.scope", slices.Repeat([]string{"s"}, 129)), messages.ProofInvalid},
		{"no uid", with(goodClaims(), "act.uid", nil), messages.ProofInvalid},
		{"no credential", with(goodClaims(), "act.credentialId", nil), messages.ProofInvalid},
		{"not an object", `[1]`, messages.ProofInvalid},
		{"not JSON", `{"iss":`, messages.ProofInvalid},
		{"bytes behind", raw(`{`, `{`) + "x", messages.ProofInvalid},
		{"broken UTF-8", raw(`laptop`, "lap\xfftop"), messages.ProofInvalid},
		{"empty", ``, messages.ProofInvalid},
	} {
		b, err := ring.Verify(f.sign(f.header(), c.claims), noon)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", c.what, err, c.want)
		}
		if err != nil && !b.Principal.IsZero() {
			t.Errorf("%s: a refusal names a principal", c.what)
		}
	}
}

func TestVerifyHeaderAndSignature(t *testing.T) {
	ring, stored := newKeyring(t)
	f := newForger(t, ring, stored)
	header := func(member string, value any) string {
		return f.sign(with(f.header(), member, value), goodClaims())
	}
	good := f.sign(f.header(), goodClaims())
	parts := strings.Split(good, ".")
	_, foreign := newKeyring(t)
	stranger := newForger(t, open(t, foreign), foreign)
	posing := forger{f.kid, stranger.key}
	for _, c := range []struct {
		what, token string
		want        error
	}{
		{"good", good, nil},
		{"header in another order", f.sign(`{"kid":"`+f.kid+`","typ":"at+jwt","alg":"EdDSA"}`, goodClaims()), nil},
		{"nothing", "", messages.ProofMissing},
		{"garbage", "garbage", messages.ProofInvalid},
		{"dots", "..", messages.ProofInvalid},
		{"alg none", header("alg", "none"), messages.ProofInvalid},
		{"alg HS256", header("alg", "HS256"), messages.ProofInvalid},
		{"alg in another case", header("alg", "eddsa"), messages.ProofInvalid},
		{"no alg", header("alg", nil), messages.ProofInvalid},
		{"an ID token's type", header("typ", "JWT"), messages.ProofInvalid},
		{"no type", header("typ", nil), messages.ProofInvalid},
		{"unknown kid", header("kid", "nobody"), messages.ProofInvalid},
		{"no kid", header("kid", nil), messages.ProofInvalid},
		{"jku", header("jku", "https://evil.test/jwks"), messages.ProofInvalid},
		{"jwk", header("jwk", map[string]any{"kty": "OKP"}), messages.ProofInvalid},
		{"x5u", header("x5u", "https://evil.test"), messages.ProofInvalid},
		{"x5c", header("x5c", []string{"AA"}), messages.ProofInvalid},
		{"crit", header("crit", []string{"exp"}), messages.ProofInvalid},
		{"b64", header("b64", false), messages.ProofInvalid},
		{"header twice", f.sign(`{"alg":"none","alg":"EdDSA","typ":"at+jwt","kid":"`+f.kid+`"}`, goodClaims()), messages.ProofInvalid},
		{"a stranger's key", stranger.sign(stranger.header(), goodClaims()), messages.ProofInvalid},
		{"a stranger's key under our kid", posing.sign(posing.header(), goodClaims()), messages.ProofInvalid},
		{"payload altered", parts[0] + "." + encode(with(goodClaims(), "act.actor", "other")) + "." + parts[2], messages.ProofInvalid},
		{"no signature", parts[0] + "." + parts[1] + ".", messages.ProofInvalid},
		{"two parts", parts[0] + "." + parts[1], messages.ProofInvalid},
		{"four parts", good + ".x", messages.ProofInvalid},
		{"padded", good + "==", messages.ProofInvalid},
		{"line broken", good[:len(good)-4] + "\n" + good[len(good)-4:], messages.ProofInvalid},
		{"space before", " " + good, messages.ProofInvalid},
		{"too large", good + strings.Repeat("A", identity.MaxBearer), messages.ProofInvalid},
	} {
		_, err := ring.Verify(c.token, noon)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", c.what, err, c.want)
		}
	}
}

// The last character of a signature carries bits that decode to nothing; a second
// spelling of the same signature must not pass.
func TestVerifyTakesOneSpellingOfASignature(t *testing.T) {
	ring, stored := newKeyring(t)
	f := newForger(t, ring, stored)
	good := f.sign(f.header(), goodClaims())
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	accepted := 0
	for i := range len(alphabet) {
		if _, err := ring.Verify(good[:len(good)-1]+alphabet[i:i+1], noon); err == nil {
			accepted++
		}
	}
	if accepted != 1 {
		t.Errorf("%d spellings of one bearer verify", accepted)
	}
}

func bearers() *rapid.Generator[identity.Bearer] {
	return rapid.Custom(func(t *rapid.T) identity.Bearer {
		principal := func(label string) messages.Principal {
			return messages.Principal{Owner: rapid.StringMatching(`[up]_[a-z2-7]{26}`).Draw(t, label), Actor: rapid.StringMatching(`[A-Za-z0-9_]{1,64}`).Draw(t, label)}
		}
		b := identity.Bearer{
			Principal: principal("principal"), UID: rapid.StringMatching(`[a-z0-9]{26,32}`).Draw(t, "uid"),
			Scope:        rapid.SliceOfN(rapid.StringMatching(`[A-Za-z0-9_:-]{1,64}`), 0, 128).Draw(t, "scope"),
			CredentialID: rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`).Draw(t, "credential"),
			Profile:      rapid.StringMatching(`[A-Za-z0-9_-]{0,64}`).Draw(t, "profile"),
			IssuedAt:     time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "issued"), 0),
		}
		if rapid.Bool().Draw(t, "of a process") {
			b.Process = identity.Process{Endpoint: rapid.StringMatching(`[A-Za-z0-9_-]{1,256}`).Draw(t, "endpoint"),
				Instance:     rapid.StringMatching(`[a-z0-9]{26,32}`).Draw(t, "instance"),
				Epoch:        rapid.Uint64Range(0, 999_999_999_999_999).Draw(t, "epoch"),
				CredentialID: rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`).Draw(t, "its credential")}
		}
		if rapid.Bool().Draw(t, "child") {
			b.Parent = principal("parent")
		}
		b.Expires = b.IssuedAt.Add(time.Duration(rapid.IntRange(1, 900).Draw(t, "life")) * time.Second)
		return b
	})
}

func TestEveryMintedBearerVerifies(t *testing.T) {
	ring, _ := newKeyring(t)
	rapid.Check(t, func(r *rapid.T) {
		b := bearers().Draw(r, "bearer")
		token, err := ring.Sign(b)
		if err != nil {
			r.Fatal(err)
		}
		at := b.IssuedAt.Add(time.Duration(rapid.Int64Range(0, int64(b.Expires.Sub(b.IssuedAt))-1).Draw(r, "at")))
		if got, err := ring.Verify(token.Reveal(), at); err != nil || !same(got, b) {
			r.Fatalf("got %+v, %v, want %+v", got, err, b)
		}
	})
}

func FuzzVerify(f *testing.F) {
	ring, stored := newKeyring(f)
	forge := newForger(f, ring, stored)
	payload, _ := json.Marshal(goodClaims())
	f.Add(`{"alg":"EdDSA","typ":"at+jwt","kid":"`+forge.kid+`"}`, string(payload), true)
	f.Add(`{"alg":"none"}`, `{}`, false)
	process, _ := json.Marshal(processClaims())
	f.Add(`{"alg":"EdDSA","typ":"at+jwt","kid":"`+forge.kid+`"}`, string(process), true)
	f.Fuzz(func(t *testing.T, header, payload string, signed bool) {
		token := header + "." + payload
		if signed {
			token = forge.sign(header, payload)
		}
		b, err := ring.Verify(token, noon)
		if err != nil {
			if messages.Describe(err).Code != messages.Unauthenticated {
				t.Fatalf("a refusal of another kind: %v", err)
			}
			return
		}
		if !signed {
			t.Fatal("an unsigned bearer verifies")
		}
		again, err := ring.Sign(b)
		if err != nil || !same(b, mustVerify(t, ring, again, noon)) {
			t.Fatalf("what verified cannot be signed: %+v, %v", b, err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	ring, _ := newKeyring(b)
	token, _ := ring.Sign(sample())
	text := token.Reveal()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ring.Verify(text, noon); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBareEd25519Verify(b *testing.B) {
	public, private, _ := ed25519.GenerateKey(nil)
	message := make([]byte, 600)
	signature := ed25519.Sign(private, message)
	for b.Loop() {
		if !ed25519.Verify(public, message, signature) {
			b.Fatal("no")
		}
	}
}

func BenchmarkSign(b *testing.B) {
	ring, _ := newKeyring(b)
	bearer := sample()
	for b.Loop() {
		if _, err := ring.Sign(bearer); err != nil {
			b.Fatal(err)
		}
	}
}
