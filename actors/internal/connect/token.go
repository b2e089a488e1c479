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

// sign appends a token with these claims in the form that NATS reads. The claims
// are JSON, written by hand, since the library hashes and encodes each set of
// claims twice and derives the key anew.
func (s *signer) sign(to, claims []byte) []byte {
	start := len(to)
	to = append(append(to, tokenHeader...), '.')
	to = base64.RawURLEncoding.AppendEncode(to, claims)
	signature := ed25519.Sign(s.private, to[start:])
	return base64.RawURLEncoding.AppendEncode(append(to, '.'), signature)
}

// userToken is the user that a connect is admitted as.
type userToken struct {
	id          string
	subject     string
	account     string
	named       bool // the account is a name in the server's configuration
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

// appendClaims writes the claims of a user.
func (u *userToken) appendClaims(to []byte, issuer string) []byte {
	to = append(to, `{"exp":`...)
	to = strconv.AppendInt(to, u.expires.Unix(), 10)
	to = appendMember(to, "jti", u.id)
	to = append(to, `,"iat":`...)
	to = strconv.AppendInt(to, u.issued.Unix(), 10)
	to = appendMember(to, "iss", issuer)
	to = appendMember(to, "name", u.principal.Name())
	to = appendMember(to, "sub", u.subject)
	if u.named {
		to = appendMember(to, "aud", u.account)
	}
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
	if !u.named {
		to = appendMember(to, "issuer_account", u.account)
	}
	to = append(to, `,"tags":[`...)
	to = appendString(to, "uid:"+u.uid)
	return append(to, `],"type":"user","version":2}}`...)
}

// answerClaims writes the claims of an answer to a request: in the field jwt a user,
// or in the field error a refusal.
func answerClaims(to []byte, s *signer, r *Request, field string, value []byte, issued time.Time) []byte {
	to = append(to, `{"aud":`...)
	to = appendString(to, r.ServerID)
	to = appendMember(to, "jti", r.ID)
	to = append(to, `,"iat":`...)
	to = strconv.AppendInt(to, issued.Unix(), 10)
	to = appendMember(to, "iss", s.public)
	to = appendMember(to, "sub", r.UserNkey)
	to = append(append(append(to, `,"nats":{"`...), field...), `":"`...)
	to = append(to, value...) // a token or a refusal's text: plain either way
	to = append(to, '"')
	if !s.named {
		to = appendMember(to, "issuer_account", s.account)
	}
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
