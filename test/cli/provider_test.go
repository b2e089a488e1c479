package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The identity provider does not answer: the service starts all the same, and machines
// and the ledger work. Whoever logs in there is told that it is away, and nothing else.
func TestAProviderThatIsAway(t *testing.T) {
	s := installed{dir: filepath.Join(t.TempDir(), "acme"), address: freeAddress(t)}
	nobody := "http://" + freeAddress(t)
	must(t, &s.made, "init", "--json", "--dir", s.dir, "--space", "acme", "--nats-url", "nats://"+s.address, "--idp", nobody)
	s.broker(t)
	p := start(t, "authplane", "serve", "--json", "--config", s.ConfigFile)
	a := newAPI(t, p.ready())
	if a.IDPIssuer != nobody {
		t.Errorf("it names %q", a.IDPIssuer)
	}
	if err := s.people(t)(); err != nil {
		t.Errorf("a machine: %v", err)
	}
	a.has("a person's grant", a.call("POST", "/v1/grants", `{"sub":"alice","actor":"laptop"}`), http.StatusCreated, "owner", "actor", "uid", "revision")
	const proof = "eyJhbGciOiJFZERTQSIsImtpZCI6IngifQ.e30.AAAA"
	a.refuses("a person's proof", a.call("POST", "/exchange", `{"id_token":"`+proof+`","actor":"laptop"}`), http.StatusServiceUnavailable)
	if state := s.state(t); state != "ready" {
		t.Errorf("the space is %q", state)
	}
	got := authplane(t, "token", "--dir", s.dir, "--sub", "alice", "--actor", "laptop")
	if got.code != 4 || !strings.Contains(got.err, "the identity provider cannot be reached") {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
	p.close(syscall.SIGTERM)
}
