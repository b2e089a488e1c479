package connect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

const space = "main"

// now is when everything here happens; tests that meet a real server use its own.
var now = time.Unix(1_750_000_000, 0).UTC()

var laptop = messages.Principal{Owner: "u_7ddcihobiesn4x46pu2mxn2qee", Actor: "laptop"}

const (
	uid  = "3k2jh4g5f6d7s8a9q0w1e2r3t4"
	root = "9z8y7x6w5v4u3t2s1r0q9p8o7n"
)

// key is a key pair in the forms that tests need.
type key struct {
	pair   nkeys.KeyPair
	public string
	seed   messages.Secret
}

func newKey(t testing.TB, kind nkeys.PrefixByte) key {
	t.Helper()
	pair, err := nkeys.CreatePair(kind)
	must(t, err)
	public, err := pair.PublicKey()
	must(t, err)
	seed, err := pair.Seed()
	must(t, err)
	return key{pair: pair, public: public, seed: messages.NewSecret(string(seed))}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// site is a server and an authority that know each other's keys.
type site struct {
	server, serverX   key
	xkey              key
	auth, authSigning key
	data, dataSigning key
	bearers           *identity.Keyring
	opener            *connect.Opener
	answerer          *connect.Answerer
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{
		server: newKey(t, nkeys.PrefixByteServer), serverX: newKey(t, nkeys.PrefixByteCurve), xkey: newKey(t, nkeys.PrefixByteCurve),
		auth: newKey(t, nkeys.PrefixByteAccount), authSigning: newKey(t, nkeys.PrefixByteAccount),
		data: newKey(t, nkeys.PrefixByteAccount), dataSigning: newKey(t, nkeys.PrefixByteAccount),
	}
	stored, err := identity.GenerateKeyring(space, now)
	must(t, err)
	s.bearers, err = identity.OpenKeyring(space, stored)
	must(t, err)
	s.opener, err = connect.NewOpener(connect.OpenerConfig{XKey: s.xkey.seed})
	must(t, err)
	s.answerer, err = connect.NewAnswerer(
		connect.AccountKey{Account: s.auth.public, Signing: s.authSigning.seed},
		connect.AccountKey{Account: s.data.public, Signing: s.dataSigning.seed})
	must(t, err)
	return s
}

// claims is a request as a server makes it.
func (s *site) claims(t testing.TB, token string) *jwt.AuthorizationRequestClaims {
	t.Helper()
	c := jwt.NewAuthorizationRequestClaims(s.auth.public)
	c.Audience = "nats-authorization-request"
	c.UserNkey = newKey(t, nkeys.PrefixByteUser).public
	c.Expires = now.Unix() + 2
	c.Server = jwt.ServerID{Name: "n1", Host: "0.0.0.0", ID: s.server.public, Version: "2.15.3", XKey: s.serverX.public}
	c.ClientInformation = jwt.ClientInformation{Host: "127.0.0.1", ID: 7, Kind: "Client", Type: "nats"}
	c.ConnectOptions = jwt.ConnectOptions{JWT: sentinelSized, Token: token, Name: "a client", Lang: "go", Version: "1.55.0", Protocol: 1}
	return c
}

// sentinelSized stands for the sentinel's JWT, which every real request carries.
var sentinelSized = strings.Repeat("eyJ0eXAiOiJKV1Qi", 50)

// seal signs and seals a request as the server does.
func (s *site) seal(t testing.TB, c *jwt.AuthorizationRequestClaims) []byte {
	t.Helper()
	token, err := c.Encode(s.server.pair)
	must(t, err)
	return s.sealToken(t, token)
}

func (s *site) sealToken(t testing.TB, token string) []byte {
	t.Helper()
	sealed, err := s.serverX.pair.Seal([]byte(token), s.xkey.public)
	must(t, err)
	return sealed
}

// open opens a request that must open.
func (s *site) open(t testing.TB, token string) connect.Request {
	t.Helper()
	r, err := s.opener.Open(s.serverX.public, s.seal(t, s.claims(t, token)))
	must(t, err)
	return r
}

// unseal opens an answer as the server does.
func (s *site) unseal(t testing.TB, sealed []byte) *jwt.AuthorizationResponseClaims {
	t.Helper()
	token, err := s.serverX.pair.Open(sealed, s.xkey.public)
	must(t, err)
	claims, err := jwt.DecodeAuthorizationResponseClaims(string(token))
	must(t, err)
	return claims
}

func (s *site) bearer(t testing.TB, b identity.Bearer) string {
	t.Helper()
	token, err := s.bearers.Sign(b)
	must(t, err)
	return token.Reveal()
}

// standing is a bearer and the records under which it is admitted.
func standing() (identity.Bearer, messages.Authority) {
	b := identity.Bearer{Principal: laptop, Scope: []string{"run"}, UID: uid, CredentialID: root, IssuedAt: now.Add(-time.Minute), Expires: now.Add(14 * time.Minute)}
	return b, messages.Authority{
		HasHead: true,
		Head: messages.Head{Principal: laptop, UID: uid, Epoch: 1, State: messages.HeadActive, Generation: 1,
			Root: messages.Root{ID: root, Expires: now.Add(90 * 24 * time.Hour)}},
		HasGrant: true,
		Grant: messages.Grant{Principal: laptop, Kind: messages.Interactive, UID: uid, Revision: 1, State: messages.GrantLive,
			Allowance: messages.Allowance{Scope: []string{"run", "see"}, Publish: []string{"chat.>", "jobs.*.start"}, Subscribe: []string{"chat.>", "news"}}},
		ReadAt: now,
	}
}

func profiles(t testing.TB, list ...connect.Profile) *connect.Profiles {
	t.Helper()
	all, err := connect.NewProfiles(space, list)
	must(t, err)
	return all
}
