package cli

import (
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// The server is a process that is killed, and started again. The service stays: it says
// so meanwhile, forgets nothing that it acknowledged, and a client with nothing but the
// defaults of its library is back too.
func TestTheServerIsKilled(t *testing.T) {
	const owner = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa"
	config, spaces := several(t, "solo")
	solo := spaces[0]
	server := solo.broker(t)
	p := start(t, "authplane", "serve", "--json", "--config", config)
	a := newAPI(t, p.ready())
	connects := solo.people(t)
	if err := connects(); err != nil {
		t.Fatal(err)
	}
	var login struct {
		Token         string `json:"token"`
		SentinelCreds string `json:"sentinel_creds"`
		InboxPrefix   string `json:"inbox_prefix"`
	}
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, nil, "grant", "--dir", solo.dir, owner+"/other", "--managed", "--parent", owner+"/host", "--publish", "work.done", "--secret-file", secret)
	must(t, &login, "token", "--json", "--dir", solo.dir, owner+"/other", "--actor-token-file", secret)
	client, err := nats.Connect(a.NATSURL, nats.UserCredentials(login.SentinelCreds), nats.Token(login.Token), nats.CustomInboxPrefix(login.InboxPrefix))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	last := a.has("a grant", a.call("POST", "/v1/grants", `{"owner":"`+owner+`","actor":"last"}`), 201, "owner", "actor", "uid", "revision")
	server.signal(syscall.SIGKILL)
	server.wait()
	solo.becomes(t, "unavailable")
	if cause := a.call("GET", "/v1/status", "").text("cause"); cause == "" {
		t.Error("the status says no cause")
	}
	a.refuses("a grant without the server", a.call("POST", "/v1/grants", `{"owner":"`+owner+`","actor":"late"}`), http.StatusServiceUnavailable)

	solo.broker(t)
	solo.becomes(t, "ready")
	if shown := a.call("GET", "/v1/grants/"+owner+"/last", ""); shown.status != 200 || shown.text("uid") != last.text("uid") {
		t.Errorf("what was acknowledged last: %d %s", shown.status, shown.raw)
	}
	if err := connects(); err != nil {
		t.Errorf("a new connect: %v", err)
	}
	for late := time.Now().Add(patience); client.FlushTimeout(time.Second) != nil; {
		if client.IsClosed() || time.Now().After(late) {
			t.Fatalf("the client is not back: %v", client.LastError())
		}
	}
	p.close(syscall.SIGTERM)
}
