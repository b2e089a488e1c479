package connect_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

func TestOpen(t *testing.T) {
	s := newSite(t)
	claims := s.claims(t, "a bearer")
	for range 2 { // derived, then kept
		r, err := s.opener.Open(s.serverX.public, s.seal(t, claims))
		must(t, err)
		if r.ServerID != s.server.public || r.ServerName != "n1" || r.ServerXKey != s.serverX.public || r.UserNkey != claims.UserNkey ||
			r.Token.Reveal() != "a bearer" || r.ClientHost != "127.0.0.1" || r.ClientName != "a client" || r.ClientKind != "Client" {
			t.Fatalf("got %+v", r)
		}
		if err := names.CheckUID(r.ID); err != nil {
			t.Fatalf("id %q: %v", r.ID, err)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", r, r, r), "a bearer") {
			t.Fatal("a request prints its token")
		}
	}
}

// E082. Each fault goes unanswered, is told from the others, and does not keep the
// next good request from being opened.
func TestOpenFaults(t *testing.T) {
	s := newSite(t)
	stranger := newSite(t)
	account := newKey(t, nkeys.PrefixByteAccount)
	good := func() *jwt.AuthorizationRequestClaims { return s.claims(t, "x") }
	with := func(change func(*jwt.AuthorizationRequestClaims)) []byte {
		c := good()
		change(c)
		return s.seal(t, c)
	}
	token, err := good().Encode(s.server.pair)
	must(t, err)
	parts := strings.Split(token, ".")
	// forged replaces the claims' text and keeps the signature; resigned signs it anew.
	edit := func(old, new string) string {
		raw, err := base64.RawURLEncoding.DecodeString(parts[1])
		must(t, err)
		if !strings.Contains(string(raw), old) {
			t.Fatalf("no %q in %s", old, raw)
		}
		return base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), old, new, 1)))
	}
	resigned := func(k key, header, payload string) []byte {
		signature, err := k.pair.Sign([]byte(header + "." + payload))
		must(t, err)
		return s.sealToken(t, header+"."+payload+"."+base64.RawURLEncoding.EncodeToString(signature))
	}
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"none"}`))
	reordered := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ed25519-nkey","typ":"JWT"}`))

	cases := []struct {
		what     string
		sealedBy string
		payload  []byte
		want     error
		says     string
	}{
		{"no header", "", s.seal(t, good()), messages.RequestUnsealed, "carries no"},
		{"plain token", s.serverX.public, []byte(token), messages.RequestUnsealed, "not sealed"},
		{"empty", s.serverX.public, nil, messages.RequestUnsealed, "not sealed"},
		{"junk", s.serverX.public, []byte(strings.Repeat("junk", 100)), messages.RequestUnsealed, "not sealed"},
		{"junk in a seal", s.serverX.public, append([]byte("xkv1"), make([]byte, 200)...), messages.RequestUnsealed, "cannot be opened"},
		{"cut short", s.serverX.public, s.seal(t, good())[:60], messages.RequestUnsealed, "cannot be opened"},
		{"too large", s.serverX.public, append([]byte("xkv1"), make([]byte, connect.MaxRequest)...), messages.RequestUnsealed, "too large"},
		{"header of another kind of key", s.server.public, s.seal(t, good()), messages.RequestUnsealed, "does not name a sealing key"},
		{"header garbled", "X" + strings.Repeat("A", 55), s.seal(t, good()), messages.RequestUnsealed, "does not name a sealing key"},
		{"sealed to another authority", s.serverX.public, stranger.seal(t, good()), messages.RequestUnsealed, "cannot be opened"},
		{"sealed by another than the header says", stranger.serverX.public, s.seal(t, good()), messages.RequestUnsealed, "cannot be opened"},
		{"not a token", s.serverX.public, s.sealToken(t, "hello"), messages.RequestForged, "three parts"},
		{"no signature", s.serverX.public, s.sealToken(t, parts[0]+"."+parts[1]+"."), messages.RequestForged, "signature"},
		{"changed under its signature", s.serverX.public, s.sealToken(t, parts[0]+"."+edit("127.0.0.1", "127.0.0.2")+"."+parts[2]), messages.RequestForged, "signature does not hold"},
		{"unsigned algorithm", s.serverX.public, resigned(s.server, none, parts[1]), messages.RequestForged, "another kind"},
		{"issued by an account", s.serverX.public, resigned(account, parts[0], edit(s.server.public, account.public)), messages.RequestForged, "issuer is not a server's key"},
		{"issued by another server", s.serverX.public, resigned(stranger.server, parts[0], edit(`"iss":"`+s.server.public, `"iss":"`+stranger.server.public)), messages.RequestForged, "issuer is not the server"},
		{"names another server", s.serverX.public, with(func(c *jwt.AuthorizationRequestClaims) { c.Server.ID = stranger.server.public }), messages.RequestForged, "issuer is not the server"},
		{"names another sealing key", s.serverX.public, with(func(c *jwt.AuthorizationRequestClaims) { c.Server.XKey = stranger.serverX.public }), messages.RequestForged, "another key"},
		{"names no sealing key", s.serverX.public, with(func(c *jwt.AuthorizationRequestClaims) { c.Server.XKey = "" }), messages.RequestForged, "another key"},
		{"no user key", s.serverX.public, with(func(c *jwt.AuthorizationRequestClaims) { c.UserNkey = "" }), messages.RequestForged, "user key"},
		{"user key of an account", s.serverX.public, with(func(c *jwt.AuthorizationRequestClaims) { c.UserNkey = account.public }), messages.RequestForged, "user key"},
		{"another audience", s.serverX.public, with(func(c *jwt.AuthorizationRequestClaims) { c.Audience = "x" }), messages.RequestForged, "not a connect request"},
		{"another type", s.serverX.public, resigned(s.server, parts[0], edit(`"type":"authorization_request"`, `"type":"user"`)), messages.RequestForged, "not a connect request"},
		{"another version", s.serverX.public, resigned(s.server, parts[0], edit(`"version":2`, `"version":3`)), messages.RequestForged, "not a connect request"},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			r, err := s.opener.Open(c.sealedBy, c.payload)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %v with %q", err, c.want, c.says)
			}
			if r != (connect.Request{}) {
				t.Fatalf("a request came with the fault: %+v", r)
			}
			if connect.KindOf(err) != messages.Unanswered {
				t.Fatal("a fault of the request would be answered")
			}
			if _, err := s.opener.Open(s.serverX.public, s.seal(t, good())); err != nil {
				t.Fatalf("after the fault a good request is refused: %v", err)
			}
		})
	}
	if _, err := s.opener.Open(s.serverX.public, resigned(s.server, reordered, parts[1])); err != nil {
		t.Errorf("a header in another order is refused: %v", err)
	}
}

// A relay that opens nothing but seals again with a key of its own is noticed: the
// request names the server's key.
func TestOpenRefusesAnotherSeal(t *testing.T) {
	s, relay := newSite(t), newSite(t)
	token, err := s.claims(t, "x").Encode(s.server.pair)
	must(t, err)
	sealed, err := relay.serverX.pair.Seal([]byte(token), s.xkey.public)
	must(t, err)
	_, err = s.opener.Open(relay.serverX.public, sealed)
	if !errors.Is(err, messages.RequestForged) || !strings.Contains(err.Error(), "another key") {
		t.Fatalf("got %v", err)
	}
}

func TestServersOnTheList(t *testing.T) {
	s, other := newSite(t), newSite(t)
	listing := func(ids ...string) *connect.Opener {
		o, err := connect.NewOpener(connect.OpenerConfig{XKey: s.xkey.seed, Servers: ids})
		must(t, err)
		return o
	}
	sealed := s.seal(t, s.claims(t, "x"))
	if _, err := listing(other.server.public, s.server.public).Open(s.serverX.public, sealed); err != nil {
		t.Errorf("a listed server is refused: %v", err)
	}
	if _, err := listing(other.server.public).Open(s.serverX.public, sealed); !errors.Is(err, messages.RequestForged) {
		t.Errorf("got %v, want %v", err, messages.RequestForged)
	}
}

// E086, and a service without its sealing key.
func TestNewOpenerRefusals(t *testing.T) {
	s := newSite(t)
	for what, c := range map[string]connect.OpenerConfig{
		"empty list":      {XKey: s.xkey.seed, Servers: []string{}},
		"not servers":     {XKey: s.xkey.seed, Servers: []string{s.server.public, s.auth.public, "n1"}},
		"no key":          {},
		"a user's seed":   {XKey: newKey(t, nkeys.PrefixByteUser).seed},
		"a public key":    {XKey: messages.NewSecret(s.xkey.public)},
		"anything at all": {XKey: messages.NewSecret("SXxxxxxx")},
	} {
		_, err := connect.NewOpener(c)
		if !errors.Is(err, messages.Malformed) {
			t.Errorf("%s: got %v, want %v", what, err, messages.Malformed)
		}
		if err != nil && c.XKey.Reveal() != "" && strings.Contains(err.Error(), c.XKey.Reveal()) {
			t.Errorf("%s: the error shows the key", what)
		}
	}
}

func TestLongNamesAreCut(t *testing.T) {
	s := newSite(t)
	c := s.claims(t, "x")
	c.ConnectOptions.Name = strings.Repeat("é", 5000)
	r, err := s.opener.Open(s.serverX.public, s.seal(t, c))
	must(t, err)
	if len(r.ClientName) > 130 || !strings.HasPrefix(r.ClientName, "éé") {
		t.Fatalf("kept %d bytes", len(r.ClientName))
	}
}

// Our seal is the library's: each opens what the other closed, whatever its size.
func TestSealIsTheServers(t *testing.T) {
	s := newSite(t)
	for _, n := range []int{0, 1, 100, 100_000} {
		r := s.open(t, strings.Repeat("t", n)) // sealed by the library
		if len(r.Token.Reveal()) != n {
			t.Fatalf("a token of %d bytes became %d", n, len(r.Token.Reveal()))
		}
		sealed, err := s.answerer.Deny(r, messages.NotGranted, now)
		must(t, err)
		s.unseal(t, sealed) // opened by the library
		if _, err := newSite(t).serverX.pair.Open(sealed, s.xkey.public); err == nil {
			t.Fatal("another server can open the answer")
		}
	}
}

func FuzzOpen(f *testing.F) {
	s := newSite(f)
	token, err := s.claims(f, "x").Encode(s.server.pair)
	must(f, err)
	f.Add(s.serverX.public, s.seal(f, s.claims(f, "x")), false)
	f.Add(s.serverX.public, []byte(token), true)
	f.Add("", []byte("xkv1"), false)
	f.Add(s.serverX.public, []byte("e30.e30.e30"), true)
	f.Fuzz(func(t *testing.T, sealedBy string, payload []byte, seal bool) {
		if seal {
			sealed, err := s.serverX.pair.Seal(payload, s.xkey.public)
			if err != nil {
				t.Skip(err)
			}
			payload = sealed
		}
		r, err := s.opener.Open(sealedBy, payload)
		if err == nil && (r.ServerID != s.server.public || !nkeys.IsValidPublicUserKey(r.UserNkey)) {
			t.Fatalf("opened %+v", r)
		}
		if err != nil && !errors.Is(err, messages.RequestUnsealed) && !errors.Is(err, messages.RequestForged) {
			t.Fatalf("got %v", err)
		}
	})
}
