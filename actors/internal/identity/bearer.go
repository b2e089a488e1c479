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
	maxEndpoint   = 256
	maxProfile    = 64
	maxCredential = 64
	maxEpoch      = 999_999_999_999_999 // what readInteger reads
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
	// Process is the process of a service's instance that this bearer is for; the zero
	// value for none.
	Process Process
	// IssuedAt and Expires are whole seconds, at most MaxBearerLife apart.
	IssuedAt, Expires time.Time
}

// Process names one process of a service's instance, and what it was issued. It is
// comparable.
type Process struct {
	// Endpoint is one token of 1 to 256 characters of [A-Za-z0-9_-].
	Endpoint string
	// Instance is the instance's name, in the grammar of incarnations.
	Instance string
	// Epoch counts the processes of the instance, from 0.
	Epoch uint64
	// CredentialID names the credential that was issued to the process: one token of 1 to
	// 64 characters of [A-Za-z0-9_-].
	CredentialID string
}

// IsZero reports whether there is no process here.
func (p Process) IsZero() bool { return p == Process{} }

func (p Process) check() error {
	switch {
	case !isToken(p.Endpoint, maxEndpoint, "_-"):
		return errors.New("the endpoint is malformed")
	case names.CheckUID(p.Instance) != nil:
		return errors.New("the instance is malformed")
	case p.Epoch > maxEpoch:
		return errors.New("the epoch is out of range")
	case !isToken(p.CredentialID, maxCredential, "_-"):
		return errors.New("the process's credential is malformed")
	}
	return nil
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
	if !b.Process.IsZero() {
		if err := b.Process.check(); err != nil {
			return err
		}
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
