package connect

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/messages"
)

func accountKey(t *testing.T) AccountKey {
	t.Helper()
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	signing, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := account.PublicKey()
	seed, _ := signing.Seed()
	return AccountKey{Account: public, Signing: messages.NewSecret(string(seed))}
}

// The server would accept a user in AUTH, so nothing but this keeps one out.
func TestMintRefusesEveryAccountButDATA(t *testing.T) {
	auth, data, other := accountKey(t), accountKey(t), accountKey(t)
	a, err := NewAnswerer(auth, data)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_750_000_000, 0)
	user := func() *userToken {
		return &userToken{id: "x", subject: "U", account: data.Account, principal: messages.Principal{Owner: "u", Actor: "a"}, uid: "u",
			permissions: jwt.Permissions{Pub: jwt.Permission{Deny: jwt.StringList{">"}}, Sub: jwt.Permission{Deny: jwt.StringList{">"}}},
			issued:      now, expires: now.Add(time.Minute)}
	}
	var token []byte
	if err := a.mint(&token, user()); err != nil || len(token) == 0 {
		t.Fatalf("a user in DATA is refused: %v", err)
	}
	for what, change := range map[string]func(*userToken){
		"in AUTH":                func(u *userToken) { u.account = auth.Account },
		"in an account unknown":  func(u *userToken) { u.account = other.Account },
		"in no account":          func(u *userToken) { u.account = "" },
		"without a principal":    func(u *userToken) { u.principal = messages.Principal{} },
		"without an incarnation": func(u *userToken) { u.uid = "" },
		"without an end":         func(u *userToken) { u.expires = time.Time{} },
		"ended":                  func(u *userToken) { u.expires = now },
		"publishing everything":  func(u *userToken) { u.permissions.Pub.Deny = nil },
		"hearing everything":     func(u *userToken) { u.permissions.Sub.Deny = jwt.StringList{"$SYS.>"} },
		"reaching the servers":   func(u *userToken) { u.permissions.Pub = jwt.Permission{Allow: jwt.StringList{"a"}} },
		"hearing the servers": func(u *userToken) {
			u.permissions.Sub = jwt.Permission{Allow: jwt.StringList{"a"}, Deny: jwt.StringList{"b"}}
		},
	} {
		u := user()
		change(u)
		token := []byte{}
		if err := a.mint(&token, u); !errors.Is(err, messages.InternalFault) || len(token) != 0 {
			t.Errorf("a user %s: got %v", what, err)
		}
	}
}

func TestNewAnswererRefusals(t *testing.T) {
	auth, data := accountKey(t), accountKey(t)
	user, _ := nkeys.CreateUser()
	seed, _ := user.Seed()
	for what, pair := range map[string][2]AccountKey{
		"the same account":     {auth, {Account: auth.Account, Signing: data.Signing}},
		"the same key":         {auth, {Account: data.Account, Signing: auth.Signing}},
		"no key":               {auth, {Account: data.Account}},
		"a user's key":         {auth, {Account: data.Account, Signing: messages.NewSecret(string(seed))}},
		"no account":           {{Signing: auth.Signing}, data},
		"an identity's seed":   {auth, {Account: public(t, data.Signing), Signing: data.Signing}},
		"a seed as an account": {auth, {Account: string(seed), Signing: data.Signing}},
	} {
		if _, err := NewAnswerer(pair[0], pair[1]); !errors.Is(err, messages.Malformed) {
			t.Errorf("%s: got %v, want %v", what, err, messages.Malformed)
		}
	}
}

func public(t *testing.T, seed messages.Secret) string {
	t.Helper()
	s, err := newSigner(seed)
	if err != nil {
		t.Fatal(err)
	}
	return s.public
}

func TestNewConfiguredAnswererRefusals(t *testing.T) {
	issuer := accountKey(t).Signing
	for what, names := range map[string][2]string{"one account": {"A", "A"}, "no callout's account": {"", "D"}, "no principals' account": {"A", ""}} {
		if _, err := NewConfiguredAnswerer(issuer, names[0], names[1]); !errors.Is(err, messages.Malformed) {
			t.Errorf("%s: got %v, want %v", what, err, messages.Malformed)
		}
	}
	if _, err := NewConfiguredAnswerer(messages.Secret{}, "A", "D"); !errors.Is(err, messages.Malformed) {
		t.Errorf("no issuer: got %v", err)
	}
}

func TestSharedKeysAreBounded(t *testing.T) {
	pair, err := nkeys.CreateCurveKeys()
	if err != nil {
		t.Fatal(err)
	}
	seed, _ := pair.Seed()
	keys, err := newSharedKeys(messages.NewSecret(string(seed)))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * maxSharedKeys {
		var raw [32]byte
		_, _ = rand.Read(raw[:])
		keys.keep(string(raw[:]), new(sharedKey))
	}
	if n := len(keys.kept); n != maxSharedKeys {
		t.Fatalf("%d keys are kept, want %d", n, maxSharedKeys)
	}
}

// Whoever only names a key, and is no server, takes no place among the kept ones.
func TestOnlyServersKeysAreKept(t *testing.T) {
	pair, _ := nkeys.CreateCurveKeys()
	seed, _ := pair.Seed()
	public, _ := pair.PublicKey()
	o, err := NewOpener(OpenerConfig{XKey: messages.NewSecret(string(seed))})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		stranger, _ := nkeys.CreateCurveKeys()
		strangers, _ := stranger.PublicKey()
		sealed, _ := stranger.Seal([]byte("a.b.c"), public)
		if _, err := o.Open(strangers, sealed); !errors.Is(err, messages.RequestForged) {
			t.Fatalf("got %v", err)
		}
	}
	if n := len(o.keys.kept); n != 0 {
		t.Fatalf("%d keys of strangers are kept", n)
	}
}

// Whatever an entry might come to say, the text stays short, printable and plain.
func TestFoldASCII(t *testing.T) {
	for text, want := range map[string]string{
		"grant.absent: not granted": "grant.absent: not granted",
		"a\n\x00\tb":                "a???b",
		"é🔥\xff":                    "???",
		`say "no\`:                  "say ?no?",
		strings.Repeat("x", 10_000): strings.Repeat("x", maxDenialText),
	} {
		if got := string(foldASCII(text)); got != want {
			t.Errorf("%.20q became %.60q, want %.60q", text, got, want)
		}
	}
}

func TestScratchKeepsNothingLarge(t *testing.T) {
	var s scratch
	large := make([]byte, 0, maxScratch+1)
	s.giveBack(&large)
	if got := s.borrow(); got == &large || len(*got) != 0 {
		t.Error("a large buffer was kept")
	}
}
