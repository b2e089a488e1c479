package identity

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// MinOwnerSecret is the least length of a space's owner secret, in bytes.
	MinOwnerSecret = 32

	// ownerContext and ownerBytes are frozen: changing either renames every owner.
	ownerContext = "cotal-owner-v1:"
	ownerBytes   = 16

	// maxSubject bounds an issuer or a subject, in bytes. OpenID Connect allows 255
	// characters for a subject.
	maxSubject = 1024
)

// NewOwnerSecret makes the secret that a space's owners are derived under: 32 raw
// random bytes. It is made once in the life of a space, since another one renames
// every owner.
func NewOwnerSecret() messages.Secret {
	return messages.NewSecret(string(randomBytes(MinOwnerSecret)))
}

// Owner names the owner that stands for one subject of one identity provider in
// one space: deterministic, and opaque without the secret. Grants and exchanges
// both call this, so that they cannot disagree.
//
// Issuer is the configured one, never what a token says. Subjects are compared
// byte for byte, without Unicode normalisation. A secret under 32 bytes is
// OwnerSecretDamaged; an issuer or subject that is empty, above 1 KiB or not
// clean UTF-8 is Malformed.
func Owner(secret messages.Secret, issuer, subject string) (string, error) {
	if len(secret.Reveal()) < MinOwnerSecret {
		return "", messages.OwnerSecretDamaged.Because("it is shorter than %d bytes", MinOwnerSecret)
	}
	if err := checkText("issuer", issuer); err != nil {
		return "", err
	}
	if err := checkText("subject", subject); err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	mac.Write([]byte(ownerContext))
	mac.Write([]byte("[" + quote(issuer) + "," + quote(subject) + "]"))
	digest := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(mac.Sum(nil)[:ownerBytes])
	owner := "u_" + strings.ToLower(digest)
	return owner, names.CheckOwner(owner)
}

// checkText refuses text that cannot be told from other text once it was decoded:
// decoders put U+FFFD wherever bytes or surrogates were broken, so that two broken
// subjects would share one owner.
func checkText(what, text string) error {
	switch {
	case text == "":
		return messages.Malformed.Because("the %s is empty", what)
	case len(text) > maxSubject:
		return messages.Malformed.Because("the %s is longer than %d bytes", what, maxSubject)
	case !utf8.ValidString(text), strings.ContainsRune(text, utf8.RuneError):
		return messages.Malformed.Because("the %s is not clean UTF-8", what)
	}
	return nil
}

// quote writes a JSON string with no escape that is not required. The standard
// encoder escapes more (<, >, &, U+2028, U+2029), which would give other owners.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20:
			b.WriteString(escapeControl(c))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func escapeControl(c byte) string {
	switch c {
	case '\b':
		return `\b`
	case '\t':
		return `\t`
	case '\n':
		return `\n`
	case '\f':
		return `\f`
	case '\r':
		return `\r`
	default:
		return fmt.Sprintf(`\u%04x`, c)
	}
}

func randomBytes(n int) []byte {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // cannot fail: without randomness the process ends
	return raw
}
