package trust_test

import (
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/trust"
)

func userKey(t *testing.T) string {
	t.Helper()
	pair, err := nkeys.CreateUser()
	must(t, err)
	public, err := pair.PublicKey()
	must(t, err)
	return public
}

func decode(t *testing.T, token string) *jwt.UserClaims {
	t.Helper()
	claims, err := jwt.DecodeUserClaims(token)
	must(t, err)
	return claims
}

func TestMintOwn(t *testing.T) {
	m := load(t, create(t, trust.Options{}))
	const label, id = "cotal:auth-mint:acme", "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	stranger := userKey(t)
	for name, tc := range map[string]struct {
		user    trust.OwnUser
		refused bool
	}{
		"in CTRL":                        {trust.OwnUser{Account: trust.CTRL, Subject: stranger, Name: label}, false},
		"in SVC":                         {trust.OwnUser{Account: trust.SVC, Subject: stranger, Name: label}, false},
		"in DATA":                        {trust.OwnUser{Account: trust.DATA, Subject: stranger, Name: label}, false},
		"a listed callout":               {trust.OwnUser{Account: trust.AUTH, Subject: m.Callouts[2].Public, Name: label}, false},
		"the listed presence":            {trust.OwnUser{Account: trust.AUTH, Subject: m.Presence.Public, Name: label}, false},
		"an observer":                    {trust.OwnUser{Account: trust.SYS, Subject: stranger, Name: id, Scope: m.Observer.Public}, false},
		"an evictor":                     {trust.OwnUser{Account: trust.SYS, Subject: stranger, Name: id, Scope: m.Evictor.Public}, false},
		"a stranger in AUTH":             {trust.OwnUser{Account: trust.AUTH, Subject: stranger, Name: label}, true},
		"SYS without a scope":            {trust.OwnUser{Account: trust.SYS, Subject: stranger, Name: id}, true},
		"SYS with another account's key": {trust.OwnUser{Account: trust.SYS, Subject: stranger, Name: id, Scope: m.Signing[trust.CTRL].Public}, true},
		"SYS with a wild name":           {trust.OwnUser{Account: trust.SYS, Subject: stranger, Name: "*", Scope: m.Observer.Public}, true},
		"a principal's name in CTRL":     {trust.OwnUser{Account: trust.CTRL, Subject: stranger, Name: principal}, true},
		"a principal's name in SVC":      {trust.OwnUser{Account: trust.SVC, Subject: stranger, Name: principal}, true},
		"a principal's name in DATA":     {trust.OwnUser{Account: trust.DATA, Subject: stranger, Name: principal}, true},
		"no account":                     {trust.OwnUser{Subject: stranger, Name: label}, true},
		"an unknown account":             {trust.OwnUser{Account: "X", Subject: stranger, Name: label}, true},
		"no user":                        {trust.OwnUser{Account: trust.CTRL, Subject: m.Accounts[trust.CTRL], Name: label}, true},
	} {
		t.Run(name, func(t *testing.T) {
			expires := time.Now().Add(1500 * time.Millisecond)
			tc.user.Expires = expires
			token, err := m.MintOwn(tc.user)
			if tc.refused {
				if err == nil || token != "" {
					t.Fatal("it was minted")
				}
				return
			}
			must(t, err)
			claims := decode(t, token)
			if claims.Subject != tc.user.Subject || claims.IssuerAccount != m.Accounts[tc.user.Account] || claims.Name != tc.user.Name {
				t.Errorf("it is %s of %s", claims.Name, claims.IssuerAccount)
			}
			if got := time.Unix(claims.Expires, 0); got.Before(expires) || got.Sub(expires) >= time.Second {
				t.Errorf("it ends %v after it should", got.Sub(expires))
			}
			if tc.user.Account == trust.SYS {
				if !claims.HasEmptyPermissions() {
					t.Error("a scoped user has permissions of its own")
				}
				return
			}
			if len(claims.Pub.Allow)+len(claims.Sub.Allow) != 0 || claims.Pub.Deny[0] != ">" || claims.Sub.Deny[0] != ">" {
				t.Errorf("empty lists became %+v", claims.Permissions)
			}
		})
	}
}

const principal = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa-laptop"

func TestMintPrincipal(t *testing.T) {
	m := load(t, create(t, trust.Options{}))
	for name, tc := range map[string]struct {
		change  func(*jwt.UserClaims)
		refused bool
	}{
		"as it should be":          {func(*jwt.UserClaims) {}, false},
		"it may nothing":           {func(c *jwt.UserClaims) { c.Permissions = deniesAll() }, false},
		"in CTRL":                  {func(c *jwt.UserClaims) { c.IssuerAccount = m.Accounts[trust.CTRL] }, true},
		"in SVC":                   {func(c *jwt.UserClaims) { c.IssuerAccount = m.Accounts[trust.SVC] }, true},
		"in SYS":                   {func(c *jwt.UserClaims) { c.IssuerAccount = m.Accounts[trust.SYS] }, true},
		"in AUTH":                  {func(c *jwt.UserClaims) { c.IssuerAccount = m.Accounts[trust.AUTH] }, true},
		"in no account":            {func(c *jwt.UserClaims) { c.IssuerAccount = "" }, true},
		"one of ours":              {func(c *jwt.UserClaims) { c.Name = "cotal:auth-mint:acme" }, true},
		"the infrastructure":       {func(c *jwt.UserClaims) { c.Name = "local-manager" }, true},
		"no name":                  {func(c *jwt.UserClaims) { c.Name = "" }, true},
		"for ever":                 {func(c *jwt.UserClaims) { c.Expires = 0 }, true},
		"an empty publish list":    {func(c *jwt.UserClaims) { c.Pub.Allow = nil }, true},
		"an empty subscribe list":  {func(c *jwt.UserClaims) { c.Sub.Allow = nil }, true},
		"it may publish to $SYS":   {func(c *jwt.UserClaims) { c.Pub.Deny = nil }, true},
		"it may subscribe to $SYS": {func(c *jwt.UserClaims) { c.Sub.Deny = jwt.StringList{"$SYS.x"} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			claims := jwt.NewUserClaims(userKey(t))
			claims.Name = principal
			claims.IssuerAccount = m.Accounts[trust.DATA]
			claims.Expires = time.Now().Add(time.Minute).Unix()
			claims.Pub.Allow.Add("chat.>")
			claims.Sub.Allow.Add("chat.>")
			claims.Pub.Deny.Add("$SYS.>")
			claims.Sub.Deny.Add("$SYS.>")
			tc.change(claims)
			token, err := m.MintPrincipal(claims)
			if (err != nil) != tc.refused || (token == "") != tc.refused {
				t.Fatalf("got %v", err)
			}
			if !tc.refused && decode(t, token).Issuer != m.Signing[trust.DATA].Public {
				t.Error("another key has signed it")
			}
		})
	}
}

func deniesAll() jwt.Permissions {
	return jwt.Permissions{Pub: jwt.Permission{Deny: jwt.StringList{">"}}, Sub: jwt.Permission{Deny: jwt.StringList{">"}}}
}
