package trust_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
)

// With the authority dead, nobody answers a connect; these users need no answer.
func TestBreakGlassWorksWithoutTheAuthority(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	for _, tc := range []struct{ creds, ask, want string }{
		{trust.BreakGlassData(space.Dir), "$JS.API.INFO", "memory"},
		{trust.BreakGlassSYS(space.Dir), "$SYS.REQ.SERVER.PING", space.Server.ID()},
	} {
		ended := make(chan struct{}) // closed by the client's last word
		nc, err := nats.Connect(space.URL(), nats.UserCredentials(tc.creds), nats.ClosedHandler(func(*nats.Conn) { close(ended) }))
		if err != nil {
			t.Fatalf("%s: %v", tc.creds, err)
		}
		reply, err := nc.Request(tc.ask, nil, 10*time.Second)
		if err != nil || !strings.Contains(string(reply.Data), tc.want) {
			t.Errorf("%s got %v", tc.creds, err)
		}
		nc.Close()
		<-ended
	}
}
