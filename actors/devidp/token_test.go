package devidp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/devidp"
	"github.com/cotal-ai/authplane/messages"
)

func TestTokenOfEveryAlgorithm(t *testing.T) {
	for _, algorithm := range []string{"EdDSA", "ES256", "RS256", "PS256"} {
		key, err := devidp.NewKey(algorithm)
		if err != nil {
			t.Fatal(err)
		}
		server, _ := started(t, devidp.Config{Key: key})
		answer := post(t, server.Issuer()+"/dev/token", "application/json", `{"sub":"user-1"}`)
		if answer.status != http.StatusOK {
			t.Fatalf("%s: status %d: %s", algorithm, answer.status, answer.body)
		}
		if subject, err := subjectOf(t, server, answer.member(t, "id_token")); err != nil || subject != "user-1" {
			t.Errorf("%s: got %q, %v", algorithm, subject, err)
		}
	}
}

func TestTokenRefusals(t *testing.T) {
	server, run := started(t, devidp.Config{})
	for _, c := range []struct {
		what, kind, body string
		want             int
	}{
		{"good", "application/json; charset=utf-8", ` {"sub":"user-1"} `, 200},
		{"no body", "application/json", ``, 400},
		{"not JSON", "application/json", `sub=user-1`, 400},
		{"another kind of body", "text/plain", `{"sub":"user-1"}`, 400},
		{"unknown member", "application/json", `{"sub":"user-1","aud":"x"}`, 400},
		{"no member", "application/json", `{}`, 400},
		{"sub in another case", "application/json", `{"Sub":"user-1"}`, 400},
		{"sub empty", "application/json", `{"sub":""}`, 400},
		{"sub null", "application/json", `{"sub":null}`, 400},
		{"sub a number", "application/json", `{"sub":1}`, 400},
		{"sub of 256 bytes", "application/json", `{"sub":"` + strings.Repeat("x", 256) + `"}`, 400},
		{"bytes behind", "application/json", `{"sub":"user-1"}{}`, 400},
		{"64 KiB and more", "application/json", `{"sub":"user-1"}` + strings.Repeat(" ", 64<<10), 413},
	} {
		if got := post(t, server.Issuer()+"/dev/token", c.kind, c.body); got.status != c.want {
			t.Errorf("%s: status %d: %s", c.what, got.status, got.body)
		}
	}
	if got := get(t, server.Issuer()+"/dev/token"); got.status == http.StatusOK {
		t.Errorf("GET gives a token: %s", got.body)
	}
	if _, err := run.Token(t.Context(), ""); !errors.Is(err, messages.Malformed) {
		t.Errorf("a token for nobody: %v", err)
	}
}

func TestOtherPagesAreKeptOut(t *testing.T) {
	server, _ := started(t, devidp.Config{})
	ask := func(change func(*http.Request)) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.Issuer()+"/dev/token", strings.NewReader(`{"sub":"user-1"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		change(request)
		return send(t, request).status
	}
	for what, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"no page":         {func(*http.Request) {}, 200},
		"a page of ours":  {func(r *http.Request) { r.Header.Set("Origin", server.Issuer()) }, 200},
		"another page":    {func(r *http.Request) { r.Header.Set("Origin", "https://evil.test") }, 403},
		"no origin":       {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"a rebound name":  {func(r *http.Request) { r.Host = "evil.test" }, 403},
		"localhost, even": {func(r *http.Request) { r.Host = strings.Replace(r.Host, "127.0.0.1", "localhost", 1) }, 403},
	} {
		if got := ask(c.change); got != c.want {
			t.Errorf("%s: status %d, want %d", what, got, c.want)
		}
	}
}
