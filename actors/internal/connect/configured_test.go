package connect_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

const configured = `
listen: "127.0.0.1:-1"
accounts { AUTH { users: [ { user: callout, password: callout } ] }, DATA {}, SYS {} }
system_account: SYS
authorization { auth_callout { issuer: %s, auth_users: [ callout ], account: AUTH, xkey: %s } }
`

// newConfiguredStation is a server whose own configuration holds the accounts.
func newConfiguredStation(t *testing.T) *station {
	t.Helper()
	issuer, xkey := newKey(t, nkeys.PrefixByteAccount), newKey(t, nkeys.PrefixByteCurve)
	file := filepath.Join(t.TempDir(), "server.conf")
	must(t, os.WriteFile(file, fmt.Appendf(nil, configured, issuer.public, xkey.public), 0o600))
	opts, err := server.ProcessConfigFile(file)
	must(t, err)
	st := &station{srv: startServer(t, opts), records: map[messages.Principal]messages.Authority{}, judge: connect.NewJudge(profiles(t))}
	stored, err := identity.GenerateKeyring(space, time.Now())
	must(t, err)
	st.bearers, err = identity.OpenKeyring(space, stored)
	must(t, err)
	st.opener, err = connect.NewOpener(connect.OpenerConfig{XKey: xkey.seed})
	must(t, err)
	st.answerer, err = connect.NewConfiguredAnswerer(issuer.seed, "AUTH", "DATA")
	must(t, err)
	return st
}

// The same parts answer a server that is configured by hand.
func TestConfiguredServer(t *testing.T) {
	st := newConfiguredStation(t)
	nc, err := nats.Connect(st.srv.ClientURL(), nats.UserInfo("callout", "callout"))
	must(t, err)
	st.respondOn(t, nc)
	p, bearer := st.grant(t, "laptop", messages.Allowance{Publish: []string{"chat.>"}})
	c := st.mustDial(t, p, bearer)

	conns, err := st.srv.Connz(&server.ConnzOptions{Username: true, User: p.Name()})
	must(t, err)
	if len(conns.Conns) != 1 || conns.Conns[0].Account != "DATA" || fmt.Sprint(conns.Conns[0].Tags) != "[uid:"+uid+"]" {
		t.Errorf("the server lists %+v", conns.Conns)
	}
	c.trySubscribe(t, p.InboxPrefix()+".>")
	must(t, c.Publish("chat.a", nil))
	c.fine(t, "what is granted")
	c.trySubscribe(t, "chat.a")
	c.refused(t, "chat.a")
	must(t, c.Publish("$SYS.REQ.USER.INFO", nil))
	c.refused(t, "$SYS.REQ.USER.INFO")

	if _, err := st.dial(t, p, "junk"); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("junk: got %v, want a refusal", err)
	}
	if n := st.answers.Load(); n != 2 {
		t.Errorf("%d answers for 2 connects", n)
	}
}
