package identity_test

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

const providerDir = "../../../test/idp"

// TestIndependentProvider logs in at a certified provider that is not ours, as a
// person with a browser would, and verifies what it signed.
func TestIndependentProvider(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("NOT TESTED: node is not installed; verification against an independent provider needs it")
	}
	if _, err := os.Stat(filepath.Join(providerDir, "node_modules", "oidc-provider")); err != nil {
		t.Skip("NOT TESTED: the npm package oidc-provider is not installed; run `npm ci` in test/idp")
	}
	for _, algorithm := range identity.Algorithms() {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			p := startIndependent(t, algorithm)
			token := p.logIn(t, "cotal-main", "human-42")
			accepts := func(change func(*identity.ProviderConfig)) (identity.Subject, error) {
				config := identity.ProviderConfig{Issuer: p.issuer, Audience: "cotal-main", Algorithms: []string{algorithm}}
				change(&config)
				provider, err := identity.NewProvider(config)
				return must(t, provider, err).Verify(t.Context(), token)
			}
			subject, err := accepts(func(*identity.ProviderConfig) {})
			if err != nil || subject.Subject != "human-42" || subject.Issuer != p.issuer || !subject.Expires.After(time.Now()) {
				t.Errorf("got %+v, %v", subject, err)
			}
			if subject, err = accepts(func(c *identity.ProviderConfig) { c.Algorithms = nil }); err != nil || subject.Subject != "human-42" {
				t.Errorf("all algorithms allowed: %+v, %v", subject, err)
			}
			for what, change := range map[string]func(*identity.ProviderConfig){
				"another audience":  func(c *identity.ProviderConfig) { c.Audience = "somebody" },
				"another algorithm": func(c *identity.ProviderConfig) { c.Algorithms = []string{otherThan(algorithm)} },
				"a clock that lags": func(c *identity.ProviderConfig) { c.Now = func() time.Time { return time.Now().Add(-time.Hour) } },
			} {
				if _, err := accepts(change); !errors.Is(err, messages.ProofInvalid) {
					t.Errorf("%s: got %v", what, err)
				}
			}
			if _, err := accepts(func(c *identity.ProviderConfig) { c.Now = func() time.Time { return subject.Expires.Add(time.Minute) } }); !errors.Is(err, messages.ProofExpired) {
				t.Errorf("an expired token: got %v", err)
			}
			token = p.logIn(t, "other", "human-42")
			if _, err := accepts(func(*identity.ProviderConfig) {}); !errors.Is(err, messages.ProofInvalid) {
				t.Errorf("another client's token: got %v", err)
			}
		})
	}
}

func otherThan(algorithm string) string {
	if algorithm == "EdDSA" {
		return "RS256"
	}
	return "EdDSA"
}

// independent is a running provider.
type independent struct{ issuer string }

func startIndependent(t *testing.T, algorithm string) independent {
	t.Helper()
	command := exec.Command("node", "provider.mjs", algorithm)
	command.Dir = providerDir
	stdin, err := command.StdinPipe()
	must(t, stdin, err)
	stdout, err := command.StdoutPipe()
	lines := bufio.NewReader(must(t, stdout, err))
	var complaints strings.Builder
	command.Stderr = &complaints
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // it ends with its input
		_, _ = io.Copy(io.Discard, lines)
		if err := command.Wait(); err != nil {
			t.Errorf("the provider ended badly: %v\n%s", err, complaints.String())
		}
	})
	first, err := lines.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the provider does not start: %v", err)
	}
	var said struct{ Issuer string }
	if err := json.Unmarshal(first, &said); err != nil {
		t.Fatal(err)
	}
	return independent{said.Issuer}
}

// person is a browser with somebody before it.
type person struct {
	t      *testing.T
	client *http.Client
}

func newPerson(t *testing.T) person {
	jar, err := cookiejar.New(nil)
	return person{t, &http.Client{Jar: must(t, jar, err), Timeout: time.Minute,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// open asks for an address, with a form if one is given, and says where it leads.
func (p person) open(address string, form url.Values) (body []byte, next *url.URL) {
	p.t.Helper()
	method, content := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, content = http.MethodPost, strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(p.t.Context(), method, address, content)
	if form != nil {
		must(p.t, request, err).Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := p.client.Do(must(p.t, request, err))
	defer must(p.t, response, err).Body.Close()
	body, err = io.ReadAll(response.Body)
	must(p.t, body, err)
	if response.StatusCode >= 400 {
		p.t.Fatalf("%s %s: status %d: %s", method, address, response.StatusCode, body)
	}
	next, _ = response.Location()
	return body, next
}

// logIn walks through the authorization code flow with PKCE, the provider's own
// login and consent pages included, and gives the ID token.
func (p independent) logIn(t *testing.T, client, subject string) string {
	t.Helper()
	who := newPerson(t)
	var discovered struct {
		Authorize string `json:"authorization_endpoint"`
		Token     string `json:"token_endpoint"`
	}
	document, _ := who.open(p.issuer+"/.well-known/openid-configuration", nil)
	if err := json.Unmarshal(document, &discovered); err != nil {
		t.Fatal(err)
	}
	const redirect = "http://127.0.0.1:49152/callback"
	verifier, state := rand.Text()+rand.Text(), rand.Text()
	challenge := sha256.Sum256([]byte(verifier))
	query := url.Values{"client_id": {client}, "response_type": {"code"}, "scope": {"openid"}, "redirect_uri": {redirect},
		"state": {state}, "code_challenge_method": {"S256"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}}
	_, next := who.open(discovered.Authorize+"?"+query.Encode(), nil)
	for steps := 0; next != nil && !strings.HasPrefix(next.String(), redirect+"?"); steps++ {
		if steps > 10 {
			t.Fatalf("the login leads nowhere, last to %s", next)
		}
		next = p.step(who, next, subject)
	}
	if next == nil || next.Query().Get("state") != state {
		t.Fatalf("the login ends at %v", next)
	}
	answer, _ := who.open(discovered.Token, url.Values{"grant_type": {"authorization_code"}, "code": {next.Query().Get("code")},
		"client_id": {client}, "redirect_uri": {redirect}, "code_verifier": {verifier}})
	var tokens struct {
		IDToken string `json:"id_token"`
	}
	if err := json.Unmarshal(answer, &tokens); err != nil || tokens.IDToken == "" {
		t.Fatal(fmt.Errorf("no ID token: %w", err))
	}
	return tokens.IDToken
}

// step follows a redirect, and fills in the form if it leads to one.
func (p independent) step(who person, at *url.URL, subject string) *url.URL {
	page, next := who.open(at.String(), nil)
	if next != nil {
		return next
	}
	form := url.Values{"prompt": {"consent"}}
	if strings.Contains(string(page), `name="login"`) {
		form = url.Values{"prompt": {"login"}, "login": {subject}, "password": {"any"}}
	}
	_, next = who.open(at.String(), form)
	return next
}
