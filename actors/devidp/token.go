package devidp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/cotal-ai/authplane/messages"
)

// tokenPath is the shortcut past the browser.
const tokenPath = "/dev/token"

// Token makes an ID token for subject, as a finished login would.
func (r *Run) Token(ctx context.Context, subject string) (messages.Secret, error) {
	if !isSubject(subject) {
		return messages.Secret{}, messages.Malformed.Because("a subject is 1 to %d bytes of UTF-8", maxSubject)
	}
	now := r.storage.now()
	done := request{subject: subject, at: now, asked: oidc.AuthRequest{ClientID: r.storage.client.id, Scopes: []string{oidc.ScopeOpenID}}}
	token, err := op.CreateIDToken(ctx, r.server.Issuer(), done, r.storage.client.life, "", "", r.storage, r.storage.client)
	if err != nil {
		return messages.Secret{}, err
	}
	return messages.NewSecret(token), nil
}

// giveToken answers POST /dev/token {"sub":"…"} with {"id_token":"…"}.
func (r *Run) giveToken(w http.ResponseWriter, request *http.Request) {
	subject, err := readSubject(request)
	if err == nil {
		var token messages.Secret
		if token, err = r.Token(request.Context(), subject); err == nil {
			answer(w, http.StatusOK, map[string]string{"id_token": token.Reveal()})
			return
		}
	}
	status := messages.Describe(err).Code.HTTPStatus()
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		status = http.StatusRequestEntityTooLarge
	}
	answer(w, status, map[string]string{"error": messages.PublicText(err)})
}

func readSubject(r *http.Request) (string, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return "", messages.Malformed.Because("the body must be application/json")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", messages.Malformed.From(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return "", messages.Malformed.Because("the body is not a JSON object")
	}
	var subject *string
	if len(members) != 1 || json.Unmarshal(members["sub"], &subject) != nil || subject == nil {
		return "", messages.Malformed.Because(`the body must be {"sub": "<subject>"}`)
	}
	return *subject, nil
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who left does not read it
}
