package world

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Owner connects as somebody who owns an account (ctrl, sys and so on), which only an
// intruder or an operator with the offline seeds can.
func (w *World) Owner(account string) *nats.Conn {
	w.Helper()
	seed, err := os.ReadFile(filepath.Join(w.Init.OfflineDir, account+".seed"))
	w.must(err)
	owner, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(seed))))
	w.must(err)
	user, err := nkeys.CreateUser()
	w.must(err)
	public, err := user.PublicKey()
	w.must(err)
	token, err := jwt.NewUserClaims(public).Encode(owner)
	w.must(err)
	nc, err := nats.Connect(w.Config.NATSURL, nats.UserJWT(
		func() (string, error) { return token, nil },
		func(nonce []byte) ([]byte, error) { return user.Sign(nonce) },
	))
	w.must(err)
	w.Cleanup(nc.Close)
	return nc
}
