package natsdtest

import (
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/trust"
)

// Everything is permission to say and hear anything within an account.
func Everything() jwt.Permissions {
	return jwt.Permissions{Pub: jwt.Permission{Allow: jwt.StringList{">"}}, Sub: jwt.Permission{Allow: jwt.StringList{">"}}}
}

// User mints a user of DATA, CTRL or SVC past every guard, exactly as a test wants
// it, and returns the option that connects as it.
func User(t testing.TB, m *trust.Material, account trust.Account, may jwt.Permissions) nats.Option {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	claims := jwt.NewUserClaims(public)
	claims.Name = "test"
	claims.IssuerAccount = m.Account(account)
	claims.Permissions = may
	token, err := claims.Encode(m.Signer(m.Signing[account].Public))
	if err != nil {
		t.Fatal(err)
	}
	return nats.UserJWT(func() (string, error) { return token, nil }, pair.Sign)
}

// Connect connects as such a user until the test ends.
func Connect(t testing.TB, url string, m *trust.Material, account trust.Account, may jwt.Permissions, opts ...nats.Option) *nats.Conn {
	t.Helper()
	ended := make(chan struct{}) // closed by the client's last word
	opts = append([]nats.Option{User(t, m, account, may), nats.Name("test"),
		nats.ClosedHandler(func(*nats.Conn) { close(ended) }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // or the library prints it
	}, opts...)
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		t.Fatalf("connect to %s: %v", account, err)
	}
	t.Cleanup(func() { nc.Close(); <-ended })
	return nc
}
