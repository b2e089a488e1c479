package connect

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/cotal-ai/authplane/messages"
)

// claims is what a token says, written as JSON behind what is there already.
type claims interface {
	appendClaims(to []byte, issuer string) []byte
}

// token writes and signs a token in the form that NATS reads. The claims are
// written by hand, since the library hashes and encodes each set of claims twice.
func (s *signer) token(c claims) []byte {
	payload := c.appendClaims(make([]byte, 0, 2048), s.public)
	encoding := base64.RawURLEncoding
	size := len(tokenHeader) + 1 + encoding.EncodedLen(len(payload))
	out := make([]byte, 0, size+1+encoding.EncodedLen(ed25519.SignatureSize))
	out = append(append(out, tokenHeader...), '.')
	out = encoding.AppendEncode(out, payload)
	signature := ed25519.Sign(s.private, out)
	return encoding.AppendEncode(append(out, '.'), signature)
}

// userToken is the user that a connect is admitted as.
type userToken struct {
	id          string
	subject     string
	account     string
	principal   messages.Principal
	uid         string
	permissions jwt.Permissions
	issued      time.Time
	expires     time.Time
}

// bounded reports whether neither list would be read as everything, and the
// servers' own subjects are denied.
func (u *userToken) bounded() bool {
	for _, p := range []jwt.Permission{u.permissions.Pub, u.permissions.Sub} {
		all := slices.Contains(p.Deny, ">")
		if len(p.Allow) == 0 && !all || !all && !slices.Contains(p.Deny, serverSubjects) {
			return false
		}
	}
	return true
}

func (u userToken) appendClaims(to []byte, issuer string) []byte {
	to = append(to, `{"exp":`...)
	to = strconv.AppendInt(to, u.expires.Unix(), 10)
	to = appendMember(to, "jti", u.id)
	to = append(to, `,"iat":`...)
	to = strconv.AppendInt(to, u.issued.Unix(), 10)
	to = appendMember(to, "iss", issuer)
	to = appendMember(to, "name", u.principal.Name())
	to = appendMember(to, "sub", u.subject)
	to = append(to, `,"nats":{"pub":`...)
	to = appendPermission(to, u.permissions.Pub)
	to = append(to, `,"sub":`...)
	to = appendPermission(to, u.permissions.Sub)
	if replies := u.permissions.Resp; replies != nil {
		to = append(to, `,"resp":{"max":`...)
		to = strconv.AppendInt(to, int64(replies.MaxMsgs), 10)
		to = append(to, `,"ttl":`...)
		to = strconv.AppendInt(to, int64(replies.Expires), 10)
		to = append(to, '}')
	}
	to = append(to, `,"subs":-1,"data":-1,"payload":-1`...)
	to = appendMember(to, "issuer_account", u.account)
	to = append(to, `,"tags":[`...)
	to = appendString(to, "uid:"+u.uid)
	return append(to, `],"type":"user","version":2}}`...)
}

// answerToken is the answer to a request: the user, or an error.
type answerToken struct {
	request Request
	account string
	field   string // jwt or error
	value   string
	issued  time.Time
}

func (a answerToken) appendClaims(to []byte, issuer string) []byte {
	to = slices.Grow(to, len(a.value)+512)
	to = append(to, `{"aud":`...)
	to = appendString(to, a.request.ServerID)
	to = appendMember(to, "jti", a.request.ID)
	to = append(to, `,"iat":`...)
	to = strconv.AppendInt(to, a.issued.Unix(), 10)
	to = appendMember(to, "iss", issuer)
	to = appendMember(to, "sub", a.request.UserNkey)
	to = append(to, `,"nats":{"issuer_account":`...)
	to = appendString(to, a.account)
	to = appendMember(to, a.field, a.value)
	return append(to, `,"type":"authorization_response","version":2}}`...)
}

func appendPermission(to []byte, p jwt.Permission) []byte {
	to = append(to, '{')
	if len(p.Allow) > 0 {
		to = append(to, `"allow":`...)
		to = appendList(to, p.Allow)
	}
	if len(p.Deny) > 0 {
		if len(p.Allow) > 0 {
			to = append(to, ',')
		}
		to = append(to, `"deny":`...)
		to = appendList(to, p.Deny)
	}
	return append(to, '}')
}

func appendList(to []byte, list []string) []byte {
	to = append(to, '[')
	for i, s := range list {
		if i > 0 {
			to = append(to, ',')
		}
		to = appendString(to, s)
	}
	return append(to, ']')
}

// appendMember writes a further member of an object. The name needs no escapes.
func appendMember(to []byte, name, value string) []byte {
	to = append(append(append(to, `,"`...), name...), `":`...)
	return appendString(to, value)
}

// appendString writes a JSON string. Almost all of ours need no escapes.
func appendString(to []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(to, quoted...)
		}
	}
	return append(append(append(to, '"'), s...), '"')
}
