package trust

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/messages"
)

// receiptContext keeps receipts apart from whatever else the owner secret derives; it is
// frozen, since another one voids every receipt.
const receiptContext = "authplane-controller-receipt-v1:"

// ReceiptKey is the key of receipts in this space, 32 raw bytes. Every process of the
// space derives the same, and it tells nothing of the secret that it comes from.
func (m *Material) ReceiptKey() messages.Secret {
	mac := hmac.New(sha256.New, []byte(m.OwnerSecret.Reveal()))
	mac.Write([]byte(receiptContext + m.InstallID))
	return messages.NewSecret(string(mac.Sum(nil)))
}

// encodeAt signs a user's claims as of a given moment: the same claims are the same to
// the byte whenever they are signed. The library always says now.
func encodeAt(claims *jwt.UserClaims, signer nkeys.KeyPair, at time.Time) (string, error) {
	issuer, err := signer.PublicKey()
	if err != nil {
		return "", err
	}
	claims.Issuer, claims.IssuedAt, claims.ID = issuer, at.Unix(), ""
	claims.Type, claims.Version = jwt.UserClaim, 2
	plain, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	sum := sha512.Sum512_256(plain)
	claims.ID = base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	header, err := json.Marshal(jwt.Header{Type: jwt.TokenTypeJwt, Algorithm: jwt.AlgorithmNkey})
	if err != nil {
		return "", err
	}
	token := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	signature, err := signer.Sign([]byte(token))
	if err != nil {
		return "", err
	}
	return token + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
