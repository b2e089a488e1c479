package trust

import (
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// sentinel is the user that every client may hold: it can say nothing and hear
// nothing, and exists so that a connect with a bearer reaches the callout.
func (c *chain) sentinel() ([]byte, error) {
	return c.creds(AUTH, "sentinel", jwt.Permissions{
		Pub: jwt.Permission{Deny: jwt.StringList{">"}}, Sub: jwt.Permission{Deny: jwt.StringList{">"}},
	})
}

// breakGlass is the user that works when nothing else does. It never expires.
func (c *chain) breakGlass(a Account) ([]byte, error) {
	return c.creds(a, "break-glass", jwt.Permissions{
		Pub: jwt.Permission{Allow: jwt.StringList{">"}}, Sub: jwt.Permission{Allow: jwt.StringList{">"}},
	})
}

// creds makes a user, signed by the account itself, as a credentials file.
func (c *chain) creds(a Account, name string, may jwt.Permissions) ([]byte, error) {
	user, err := newKey(nkeys.PrefixByteUser)
	if err != nil {
		return nil, err
	}
	claims := jwt.NewUserClaims(user.Public)
	claims.Name = name
	claims.Permissions = may
	pair, err := newSigner(c.identities[a])
	if err != nil {
		return nil, err
	}
	token, err := claims.Encode(pair)
	if err != nil {
		return nil, err
	}
	return jwt.FormatUserConfig(token, []byte(user.Seed.Reveal()))
}
