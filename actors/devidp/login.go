package devidp

import (
	"html/template"
	"net/http"
	"unicode/utf8"

	"github.com/zitadel/oidc/v3/pkg/op"
)

const (
	loginPath  = "/login"
	devicePath = "/device"

	// maxSubject is what OpenID Connect allows a subject, in bytes.
	maxSubject = 255
)

func page() *template.Template {
	return template.Must(template.New("login").Parse(`<!doctype html><meta charset="utf-8"><title>Development login</title>
<form method="post"><p>This is the development identity provider. It believes everybody.</p>
<p>{{.Problem}}</p><input type="hidden" name="id" value="{{.ID}}">
{{if .Device}}<p><label>Code <input name="user_code" value="{{.UserCode}}" required></label></p>{{end}}
<p><label>Who are you? <input name="sub" value="{{.Subject}}" required autofocus></label> <button>Log in</button></p></form>
`))
}

type pageData struct {
	ID, UserCode, Subject, Problem string
	Device                         bool
}

// logins answers the pages on which somebody says who they are.
type logins struct {
	storage  *storage
	provider op.OpenIDProvider
	issuer   string
	page     *template.Template
}

// logIn is the page of the authorization code flow.
func (l *logins) logIn(w http.ResponseWriter, r *http.Request) {
	data := pageData{ID: r.FormValue("id"), Subject: r.FormValue("sub")}
	if r.Method != http.MethodPost {
		l.show(w, http.StatusOK, data)
		return
	}
	if !isSubject(data.Subject) {
		data.Problem = "That is no subject."
		l.show(w, http.StatusBadRequest, data)
		return
	}
	if err := l.storage.logIn(data.ID, data.Subject); err != nil {
		http.Error(w, "This login is unknown, done or expired.", http.StatusBadRequest)
		return
	}
	back := op.AuthCallbackURL(l.provider)(op.ContextWithIssuer(r.Context(), l.issuer), data.ID)
	http.Redirect(w, r, back, http.StatusFound)
}

// approve is the page of the device flow.
func (l *logins) approve(w http.ResponseWriter, r *http.Request) {
	data := pageData{UserCode: r.FormValue("user_code"), Subject: r.FormValue("sub"), Device: true}
	if r.Method != http.MethodPost {
		l.show(w, http.StatusOK, data)
		return
	}
	if !isSubject(data.Subject) || l.storage.approve(data.UserCode, data.Subject) != nil {
		data.Problem = "That is no subject, or the code is unknown, used or expired."
		l.show(w, http.StatusBadRequest, data)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("Done. You may close this page.\n"))
}

func (l *logins) show(w http.ResponseWriter, status int, data pageData) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_ = l.page.Execute(w, data) // who left the page does not read it
}

func isSubject(s string) bool {
	return s != "" && len(s) <= maxSubject && utf8.ValidString(s)
}
