package service

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

func openAt(t *testing.T, address string) *Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "capability")
	if err := os.WriteFile(file, []byte("S3CRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := Open(Record{URL: address, CapabilityFile: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestAServiceThatIsGoneIsUnavailable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	client := openAt(t, server.URL)
	server.Close()
	_, err := client.Get(t.Context(), "/v1/status")
	if !errors.Is(err, messages.ServiceAway) || strings.Contains(err.Error(), "S3CRET") {
		t.Errorf("got %v", err)
	}
}

func TestTheCapabilityFollowsNoRedirectAndNoProxy(t *testing.T) {
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	t.Setenv("HTTP_PROXY", other.URL)
	_, err := openAt(t, server.URL).Get(t.Context(), "/v1/status")
	var refused *Refusal
	if !errors.As(err, &refused) || reached {
		t.Errorf("got %v, reached the other: %v", err, reached)
	}
}

func TestARefusalKeepsItsMeaning(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(`{"error":{"code":"conflict","reason":"grant.live","message":"m","request_id":"r","next":"n","retryable":true}}`))
	}))
	defer server.Close()
	_, err := openAt(t, server.URL).Send(t.Context(), http.MethodPost, "/v1/grants", map[string]string{})
	var refused *Refusal
	if !errors.As(err, &refused) {
		t.Fatalf("got %v", err)
	}
	want := Refusal{Code: messages.Conflict, Reason: "grant.live", Message: "m", RequestID: "r", Next: "n", Retryable: true}
	if *refused != want {
		t.Errorf("got %+v", *refused)
	}
}

func FuzzRefusal(f *testing.F) {
	f.Add(409, []byte(`{"error":{"code":"conflict"}}`))
	f.Add(500, []byte("<html>"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if refusalFrom(status, body).Code == "" {
			t.Error("a refusal without a code")
		}
	})
}
