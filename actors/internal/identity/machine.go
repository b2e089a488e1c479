package identity

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"

	"github.com/cotal-ai/authplane/messages"
)

// secretBytes is the length of machine secrets and capabilities, before encoding.
const secretBytes = 32

// NewActorToken makes a machine's secret, 43 characters of base64url, and the hash
// that its grant keeps: the lower-case hex SHA-256 of those characters. The secret
// is shown once and stored nowhere.
func NewActorToken() (token messages.Secret, hash string) {
	text := base64.RawURLEncoding.EncodeToString(randomBytes(secretBytes))
	sum := sha256.Sum256([]byte(text))
	return messages.NewSecret(text), hex.EncodeToString(sum[:])
}

// CheckActorToken reports whether presented is the secret whose hash is kept. It
// takes the same time whatever was presented; call it with an empty hash where
// there is no grant, so that absence takes the same time too. A hash that is not
// 64 characters of lower-case hex fits nothing.
func CheckActorToken(hash, presented string) bool {
	sum := sha256.Sum256([]byte(presented))
	return subtle.ConstantTimeCompare([]byte(hash), []byte(hex.EncodeToString(sum[:]))) == 1
}

// NewCapability makes the secret of one start of a process, 64 characters of
// lower-case hex. Whoever can read its file may use the loopback face.
func NewCapability() messages.Secret {
	return messages.NewSecret(hex.EncodeToString(randomBytes(secretBytes)))
}

// CheckCapability reports, in constant time, whether presented is the capability
// of this start. An absent capability fits nothing.
func CheckCapability(capability messages.Secret, presented string) bool {
	want, got := sha256.Sum256([]byte(capability.Reveal())), sha256.Sum256([]byte(presented))
	same := subtle.ConstantTimeCompare(want[:], got[:]) == 1
	return same && !capability.IsZero()
}
