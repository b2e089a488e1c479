package devidp_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/devidp"
)

// visit is one walk through the authorization code flow.
type visit struct {
	discovered map[string]any
	verifier   string
	redirect   string
}

func newVisit(t *testing.T, server *devidp.Server) visit {
	t.Helper()
	v := visit{verifier: rand.Text() + rand.Text(), redirect: "http://127.0.0.1:49152/callback"}
	answer := get(t, server.Issuer()+"/.well-known/openid-configuration")
	if err := json.Unmarshal([]byte(answer.body), &v.discovered); err != nil {
		t.Fatalf("status %d: %s", answer.status, answer.body)
	}
	return v
}

func (v visit) at(name string) string {
	address, _ := v.discovered[name].(string)
	return address
}

func (v visit) authorize(t *testing.T, change url.Values) reply {
	t.Helper()
	challenge := sha256.Sum256([]byte(v.verifier))
	query := url.Values{"client_id": {clientID}, "response_type": {"code"}, "scope": {"openid"}, "redirect_uri": {v.redirect},
		"state": {"a-state"}, "nonce": {"a-nonce"}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}}
	for name, value := range change {
		query[name] = value
	}
	return get(t, v.at("authorization_endpoint")+"?"+query.Encode())
}

// logIn goes through the pages and gives where the browser is sent in the end.
func (v visit) logIn(t *testing.T, subject string) *url.URL {
	t.Helper()
	login := v.authorize(t, nil).location
	if login == nil || login.Path != "/login" {
		t.Fatalf("the browser is sent to %v", login)
	}
	if form := get(t, login.String()); form.status != http.StatusOK || !strings.Contains(form.body, `name="sub"`) {
		t.Fatalf("status %d: %s", form.status, form.body)
	}
	back := postForm(t, login.String(), url.Values{"id": {login.Query().Get("id")}, "sub": {subject}})
	if back.status != http.StatusFound {
		t.Fatalf("status %d: %s", back.status, back.body)
	}
	return get(t, back.location.String()).location
}

func (v visit) exchange(t *testing.T, code, verifier string) reply {
	t.Helper()
	return postForm(t, v.at("token_endpoint"), url.Values{"grant_type": {"authorization_code"}, "code": {code},
		"client_id": {clientID}, "redirect_uri": {v.redirect}, "code_verifier": {verifier}})
}

func TestAuthorizationCodeFlow(t *testing.T) {
	server, _ := started(t, devidp.Config{})
	v := newVisit(t, server)
	end := v.logIn(t, "user-1")
	if end == nil || !strings.HasPrefix(end.String(), v.redirect+"?") || end.Query().Get("state") != "a-state" {
		t.Fatalf("the browser ends at %v", end)
	}
	code := end.Query().Get("code")
	if wrong := v.exchange(t, code, "x"+v.verifier); wrong.status == http.StatusOK {
		t.Error("a code is given to somebody without its verifier")
	}
	answer := v.exchange(t, code, v.verifier)
	token := answer.member(t, "id_token")
	if subject, err := subjectOf(t, server, token); err != nil || subject != "user-1" {
		t.Fatalf("got %q, %v from %s", subject, err, answer.body)
	}
	payload, _ := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if !strings.Contains(string(payload), `"nonce":"a-nonce"`) {
		t.Errorf("the nonce is lost: %s", payload)
	}
	if again := v.exchange(t, code, v.verifier); again.status == http.StatusOK {
		t.Error("a code is good twice")
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.at("userinfo_endpoint"), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+answer.member(t, "access_token"))
	if info := send(t, request); info.member(t, "sub") != "user-1" {
		t.Errorf("userinfo: status %d: %s", info.status, info.body)
	}
}

func TestAuthorizationRefusals(t *testing.T) {
	server, _ := started(t, devidp.Config{})
	v := newVisit(t, server)
	for what, change := range map[string]url.Values{
		"another client":          {"client_id": {"somebody"}},
		"a redirect elsewhere":    {"redirect_uri": {"https://evil.test/callback"}},
		"another loopback path":   {"redirect_uri": {"http://127.0.0.1:1/elsewhere"}},
		"a redirect by look-like": {"redirect_uri": {"http://127.0.0.1.evil.test/callback"}},
	} {
		if got := v.authorize(t, change); got.location != nil {
			t.Errorf("%s: the browser is sent to %s", what, got.location)
		}
	}
	for what, form := range map[string]url.Values{
		"unknown login": {"id": {"nobody"}, "sub": {"user-1"}},
		"no subject":    {"id": {v.authorize(t, nil).location.Query().Get("id")}, "sub": {""}},
	} {
		if got := postForm(t, server.Issuer()+"/login", form); got.status != http.StatusBadRequest {
			t.Errorf("%s: status %d", what, got.status)
		}
	}
	if got := v.exchange(t, "no-code", v.verifier); got.status == http.StatusOK {
		t.Error("any code is taken")
	}
	if got := get(t, server.Issuer()+`/login?id="><script>x</script>`); strings.Contains(got.body, "<script>") {
		t.Error("the page repeats markup")
	}
}

func TestDeviceFlow(t *testing.T) {
	server, _ := started(t, devidp.Config{})
	v := newVisit(t, server)
	begun := postForm(t, v.at("device_authorization_endpoint"), url.Values{"client_id": {clientID}, "scope": {"openid"}})
	deviceCode, userCode := begun.member(t, "device_code"), begun.member(t, "user_code")
	poll := func() reply {
		return postForm(t, v.at("token_endpoint"), url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"},
			"client_id": {clientID}, "device_code": {deviceCode}})
	}
	if got := poll(); got.member(t, "error") != "authorization_pending" {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	where := begun.member(t, "verification_uri_complete")
	if form := get(t, where); form.status != http.StatusOK || !strings.Contains(form.body, userCode) {
		t.Fatalf("status %d: %s", form.status, form.body)
	}
	if got := postForm(t, server.Issuer()+"/device", url.Values{"user_code": {"nobody"}, "sub": {"user-1"}}); got.status != http.StatusBadRequest {
		t.Errorf("an unknown code: status %d", got.status)
	}
	if got := postForm(t, where, url.Values{"user_code": {userCode}, "sub": {"user-1"}}); got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	if subject, err := subjectOf(t, server, poll().member(t, "id_token")); err != nil || subject != "user-1" {
		t.Errorf("got %q, %v", subject, err)
	}
	if got := poll(); got.status == http.StatusOK {
		t.Error("a device code is good twice")
	}
}
