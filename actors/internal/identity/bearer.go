package identity

import (
	"errors"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Limits of a bearer. What exceeds them is neither signed nor verified.
const (
	// MaxBearer is the size of an encoded bearer, in bytes.
	MaxBearer = 16 << 10
	// MaxScope is the number of scope entries.
	MaxScope = 128
	// Tolerance is how far clocks may differ.
	Tolerance = 5 * time.Second

	maxScopeEntry = 64
	maxProfile    = 64
	maxCredential = 64
)

const (
	algorithm     = "EdDSA"
	bearerType    = "at+jwt"
	bearerVersion = 1
)

// Bearer is what a bearer says: whose it is, within what bounds, which incarnation
// and credential it hangs on, and for how long.
type Bearer struct {
	Principal messages.Principal
	// Scope bounds what its connections may do; empty means nothing. Each entry is
	// 1 to 64 characters of [A-Za-z0-9_:-], and there are at most MaxScope.
	Scope []string
	// Parent is the principal whose grant bounds this one; the zero value for none.
	Parent messages.Principal
	// UID names the incarnation.
	UID string
	// CredentialID names the credential this bearer descends from: one token of
	// 1 to 64 characters of [A-Za-z0-9_-].
	CredentialID string
	// Profile names a permission template, 1 to 64 characters of [A-Za-z0-9_-];
	// empty is the default one.
	Profile string
	// IssuedAt and Expires are whole seconds, at most MaxBearerLife apart.
	IssuedAt, Expires time.Time
}

// check refuses a bearer that must neither be signed nor accepted. Both sides call
// it, so that whatever is signed verifies.
func (b Bearer) check() error {
	if err := names.CheckPrincipal(b.Principal); err != nil {
		return err
	}
	if !b.Parent.IsZero() {
		if err := names.CheckPrincipal(b.Parent); err != nil {
			return errors.New("the parent is not a principal")
		}
	}
	if err := names.CheckUID(b.UID); err != nil {
		return err
	}
	if !isToken(b.CredentialID, maxCredential, "_-") {
		return errors.New("the credential's id is malformed")
	}
	if b.Profile != "" && !isToken(b.Profile, maxProfile, "_-") {
		return errors.New("the profile is malformed")
	}
	return b.checkBounds()
}

func (b Bearer) checkBounds() error {
	if len(b.Scope) > MaxScope {
		return errors.New("the scope is too long")
	}
	for _, entry := range b.Scope {
		if !isToken(entry, maxScopeEntry, "_:-") {
			return errors.New("a scope entry is malformed")
		}
	}
	life := b.Expires.Unix() - b.IssuedAt.Unix()
	if b.IssuedAt.Unix() < 0 || life <= 0 || life > int64(MaxBearerLife/time.Second) {
		return errors.New("the lifetime is not within 900 seconds")
	}
	return nil
}

// isToken reports whether s is 1 to limit ASCII letters, digits or characters of more.
func isToken(s string, limit int, more string) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		c := s[i]
		ok := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		for j := 0; !ok && j < len(more); j++ {
			ok = c == more[j]
		}
		if !ok {
			return false
		}
	}
	return true
}
