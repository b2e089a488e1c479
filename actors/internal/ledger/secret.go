package ledger

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"github.com/cotal-ai/authplane/messages"
)

const secretBytes = 32

// newSecret draws the secret of a machine: 32 random bytes in base64url.
func newSecret() messages.Secret {
	var raw [secretBytes]byte
	_, _ = rand.Read(raw[:]) // cannot fail: without randomness the process ends
	return messages.NewSecret(base64.RawURLEncoding.EncodeToString(raw[:]))
}

// HashSecret is what a row holds of a machine's secret: the hex SHA-256 of its text.
func HashSecret(secret messages.Secret) string {
	sum := sha256.Sum256([]byte(secret.Reveal()))
	return hex.EncodeToString(sum[:])
}
