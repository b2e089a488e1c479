package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nkeys"
)

const (
	served = "svc_a"
	runner = "runner"
	one    = "oooooooooooooooooooooooooo"
)

// gateFields is what is told of the gate of an instance, and more.
func gateFields(more ...string) []string {
	return append(more, "endpoint", "instance", "state", "epoch", "generation", "owner", "actor", "held_by")
}

// Whoever has nothing but the service, a server apart from it, and HTTP: processes of a
// service register, are issued what they connect with, and are fenced; and a controller
// comes in by the doors.
func TestProcessesOfServices(t *testing.T) {
	provider, vouches := dev(t, filepath.Join(t.TempDir(), "idp"), "--space", "acme")
	s := installed{dir: filepath.Join(t.TempDir(), "acme"), address: freeAddress(t)}
	must(t, &s.made, "init", "--json", "--dir", s.dir, "--space", "acme", "--nats-url", "nats://"+s.address, "--idp", vouches.IDPIssuer)
	if err := os.WriteFile(s.ConfigFile, []byte(read(t, s.ConfigFile)+"\npublic:\n  listen: 127.0.0.1:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.broker(t)
	p := start(t, "authplane", "serve", "--json", "--config", s.ConfigFile)
	r := p.ready()
	for name, run := range map[string]func(*api){"a service": aServiceIsFenced, "a controller": aControllerComes} {
		t.Run(name, func(t *testing.T) { run(newAPI(t, r)) })
	}
	p.close(syscall.SIGTERM)
	provider.close(syscall.SIGTERM)
}

// granted grants somebody, and gives his owner.
func (a *api) granted(body string) string {
	a.Helper()
	return a.has("a grant", a.call("POST", "/v1/grants", body), http.StatusCreated, "owner", "actor", "uid", "revision").text("owner")
}

// registers makes a new process the one of an instance, and insists on its epoch.
func (a *api) registers(endpoint, owner, actor string, epoch float64) said {
	a.Helper()
	got := a.has("a registration", a.call("POST", "/v1/instances", fmt.Sprintf(`{"endpoint":%q,"instance":%q,"owner":%q,"actor":%q}`, endpoint, one, owner, actor)),
		http.StatusOK, gateFields("revoked")...)
	if got.body["epoch"] != epoch || got.text("state") != "open" || got.text("instance") != one {
		a.Fatalf("registered %s", got.raw)
	}
	return got
}

// reason is that of a refusal.
func (s said) reason() string {
	refusal, _ := s.body["error"].(map[string]any)
	reason, _ := refusal["reason"].(string)
	return reason
}

// serves connects with what the process of an epoch is issued, and answers with that
// epoch. What it returns is told when the connection is closed, and why.
func (a *api) serves(epoch int) <-chan error {
	a.Helper()
	issued := a.has("a credential", a.call("POST", "/v1/instances/"+served+"/"+one+"/credential", fmt.Sprintf(`{"epoch":%d}`, epoch)),
		http.StatusOK, "token", "credential_id", "owner", "actor", "expires_at")
	closed := make(chan error, 1)
	nc, err := nats.Connect(a.NATSURL, nats.UserCredentials(a.SentinelCreds), nats.Token(issued.text("token")),
		nats.CustomInboxPrefix("_INBOX_"+issued.text("owner")+"-"+issued.text("actor")), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // it may not be asked as $SRV
		nats.ClosedHandler(func(nc *nats.Conn) { closed <- nc.LastError() }))
	if err != nil {
		a.Fatal(err)
	}
	a.Cleanup(nc.Close)
	service, err := micro.AddService(nc, micro.Config{Name: "svc", Version: "1.0.0"})
	if err == nil {
		err = service.AddEndpoint("ask", micro.HandlerFunc(func(r micro.Request) {
			_ = r.Respond(fmt.Append(nil, epoch)) // to an asker who may have gone
		}), micro.WithEndpointSubject("svc.ask"))
	}
	if err = errors.Join(err, nc.FlushTimeout(patience)); err != nil {
		a.Fatal(err)
	}
	return closed
}

// answers insists on who answers.
func (a *api) answers(asker *nats.Conn, want string) {
	a.Helper()
	if m, err := asker.Request("svc.ask", nil, patience); err != nil || string(m.Data) != want {
		a.Errorf("it is not %s that answers: %v, %v", want, m, err)
	}
}

// aServiceIsFenced has a service serve, and its successor take over: what the first one
// was issued lets it in no more, and whoever waits for that is told.
func aServiceIsFenced(a *api) {
	const at = "/v1/instances/" + served + "/" + one
	owner := a.granted(`{"sub":"server","actor":"svc","publish":["svc.>"],"subscribe":["svc.>"],"serve":true}`)
	a.granted(`{"sub":"asker","actor":"laptop","publish":["svc.>"],"subscribe":["svc.>"]}`)
	login := a.call("POST", "/exchange", `{"id_token":"`+a.idToken("asker")+`","actor":"laptop"}`)
	asker, err := nats.Connect(a.NATSURL, nats.UserCredentials(a.SentinelCreds), nats.Token(login.text("token")), nats.CustomInboxPrefix("_INBOX_"+login.text("owner")+"-laptop"))
	if err != nil {
		a.Fatal(err)
	}
	defer asker.Close()
	a.refuses("nobody registered yet", a.call("GET", at+"?epoch=0&wait=600", ""), http.StatusNotFound)
	a.registers(served, owner, "svc", 0)
	a.refuses("an epoch there is not", a.call("POST", at+"/credential", `{"epoch":1}`), http.StatusConflict)
	fenced := make(chan said, 1)
	go func() { fenced <- a.call("GET", at+"?epoch=0&wait=600", "") }()
	closed := a.serves(0)
	a.answers(asker, "0")
	if got := a.has("the gate", a.call("GET", at+"?epoch=0&wait=1", ""), 200, gateFields("fenced")...); got.body["fenced"] != false {
		a.Errorf("it is fenced already: %s", got.raw)
	}
	select {
	case got := <-fenced:
		a.Fatalf("the wait ends before its time: %d %s", got.status, got.raw)
	default:
	}

	if done := a.registers(served, owner, "svc", 1); done.body["revoked"] != 1.0 {
		a.Errorf("registered %s", done.raw)
	}
	select {
	case got := <-fenced:
		if a.has("the end of the wait", got, 200, gateFields("fenced")...); got.body["fenced"] != true {
			a.Errorf("the wait ends with %s", got.raw)
		}
	case <-time.After(patience):
		a.Error("the wait does not end")
	}
	select {
	case err := <-closed:
		if !errors.Is(err, nats.ErrAuthorization) {
			a.Errorf("the first one is out for %v", err)
		}
	case <-time.After(patience):
		a.Error("the first one may come back")
	}
	if got := a.call("POST", at+"/credential", `{"epoch":0}`); got.status != http.StatusConflict || got.reason() != "instance.superseded" {
		a.Errorf("the first one is issued %d %s", got.status, got.raw)
	}
	a.serves(1)
	a.answers(asker, "1")
}

// aControllerComes registers the instance of a controller, which has keys of its own and
// a proof of who runs it, and brings it in; the next one leaves it nothing.
func aControllerComes(a *api) {
	owner := a.granted(`{"sub":"boss","actor":"cli","scope":["supervise"]}`)
	a.registers(runner, owner, "ctl_"+one, 0)
	proof := a.idToken("boss")
	pairs, keys := map[string]nkeys.KeyPair{}, map[string]string{}
	for _, kind := range []string{"supervisor", "executor", "server", "recorder", "ledger"} {
		pair, err := nkeys.CreateUser()
		if err == nil {
			pairs[kind] = pair
			keys[kind], err = pair.PublicKey()
		}
		if err != nil {
			a.Fatal(err)
		}
	}
	ask := func(door string, more map[string]any) said {
		body := map[string]any{"v": 1, "space": "acme", "actor": "cli", "endpoint": runner, "instance": one, "epoch": 0,
			"request_id": door + strings.Repeat("-", 22), "keys": keys}
		for name, value := range more {
			body[name] = value
		}
		raw, err := json.Marshal(body)
		if err != nil {
			a.Fatal(err)
		}
		return a.call("POST", a.PublicURL+"/v1/controllers/"+door, string(raw), "Authorization", "Bearer "+proof)
	}
	enters := func(kind string, by said) {
		credentials, _ := by.body["credentials"].(map[string]any)
		issued, _ := credentials[kind].(map[string]any)
		token, _ := issued["jwt"].(string)
		nc, err := nats.Connect(a.NATSURL, nats.UserJWT(func() (string, error) { return token, nil }, pairs[kind].Sign), nats.CustomInboxPrefix("_INBOX_"+keys[kind]))
		if by.status != 200 || err != nil {
			a.Fatalf("as %s: %d, reason %q, %v", kind, by.status, by.reason(), err)
		}
		nc.Close()
	}
	enters("supervisor", ask("prepare", nil))
	active := ask("activate", map[string]any{"commands": []string{"start"}})
	enters("server", active)
	a.registers(runner, owner, "ctl_"+one, 1)
	if got := ask("renew", map[string]any{"receipt": active.text("receipt")}); got.status != http.StatusConflict || got.reason() != "instance.superseded" {
		a.Errorf("the first one after the second: %d, reason %q", got.status, got.reason())
	}
}
