package messages

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a value that must not be seen: a seed, a token, a capability. It
// prints, logs and marshals as a redaction; Reveal is the only way to the bytes,
// so that every use can be found by looking for its callers.
//
// The zero value is an absent secret. Secrets are not compared with ==: each one
// that was made differs from all others.
type Secret struct {
	// value is a pointer because package fmt, inside an unexported field of another
	// type, prints what it finds without asking Format: an address tells nothing.
	value *string
}

// NewSecret wraps value. The caller should keep no other copy.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{value: &value}
}

// Reveal returns the secret itself. Call it where the secret is used, never
// where it is passed on.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether there is no secret here.
func (s Secret) IsZero() bool { return s.value == nil }

// String returns a redaction, never the secret.
func (s Secret) String() string { return redacted }

// GoString returns a redaction, so that %#v shows nothing either.
func (s Secret) GoString() string { return redacted }

// Format writes a redaction whatever the verb is.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = state.Write([]byte(redacted)) }

// LogValue keeps the secret out of structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON keeps the secret out of JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText keeps the secret out of every textual encoding.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
