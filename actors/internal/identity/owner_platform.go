package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// platformContext is frozen: changing it renames every platform's owner.
const platformContext = "authplane-platform-owner-v1:"

// PlatformOwner names the owner that stands for whoever hosts a space: the same for
// every instance that is assigned, and none that a person can have. account is the
// public key of the space's DATA account. Refused as Owner refuses.
func PlatformOwner(secret messages.Secret, space, account string) (string, error) {
	if len(secret.Reveal()) < MinOwnerSecret {
		return "", messages.OwnerSecretDamaged.Because("it is shorter than %d bytes", MinOwnerSecret)
	}
	if err := names.CheckSpace(space); err != nil {
		return "", err
	}
	if !nkeys.IsValidPublicAccountKey(account) {
		return "", messages.Malformed.Because("an account is named by its public key")
	}
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	mac.Write([]byte(platformContext + "[" + quote(space) + "," + quote(account) + "]"))
	digest := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(mac.Sum(nil)[:ownerBytes])
	owner := "p_" + strings.ToLower(digest)
	return owner, names.CheckOwner(owner)
}
