package devidp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/devidp"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const clientID = "cotal-main"

// started starts a provider that ends with the test.
func started(t *testing.T, config devidp.Config) (*devidp.Server, *devidp.Run) {
	t.Helper()
	config.ClientID = clientID
	server, err := devidp.New(config)
	if err != nil {
		t.Fatal(err)
	}
	run, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, run) })
	return server, run
}

func stop(t *testing.T, run *devidp.Run) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := run.Stop(ctx); err != nil {
		t.Error(err)
	}
	<-run.Ended()
}

// browser keeps no connection, so that a stop has nothing to wait for, and follows
// no redirect, so that a test sees each.
func browser() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       10 * time.Second,
	}
}

// reply is what came back.
type reply struct {
	status   int
	location *url.URL
	body     string
}

func (r reply) member(t *testing.T, name string) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(r.body), &members); err != nil {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	value, _ := members[name].(string)
	return value
}

func send(t *testing.T, request *http.Request) reply {
	t.Helper()
	response, err := browser().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	location, _ := response.Location()
	return reply{response.StatusCode, location, string(body)}
}

func get(t *testing.T, address string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, request)
}

func post(t *testing.T, address, kind, body string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	return send(t, request)
}

func postForm(t *testing.T, address string, form url.Values) reply {
	t.Helper()
	return post(t, address, "application/x-www-form-urlencoded", form.Encode())
}

// subjectOf verifies a token as the service would: by discovery.
func subjectOf(t *testing.T, server *devidp.Server, token string) (string, error) {
	t.Helper()
	provider, err := identity.NewProvider(identity.ProviderConfig{Issuer: server.Issuer(), Audience: clientID})
	if err != nil {
		t.Fatal(err)
	}
	subject, err := provider.Verify(t.Context(), token)
	return subject.Subject, err
}

func secretToken(t *testing.T, run *devidp.Run, subject string) messages.Secret {
	t.Helper()
	token, err := run.Token(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
