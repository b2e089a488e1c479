package devidp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/cotal-ai/authplane/messages"
)

// NewKey makes a signing key for EdDSA, ES256, RS256 or PS256, as a private JWK.
// Keep it where tokens should survive a restart of the process.
func NewKey(algorithm string) (messages.Secret, error) {
	var private crypto.Signer
	var err error
	switch jose.SignatureAlgorithm(algorithm) {
	case jose.EdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case jose.ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.RS256, jose.PS256:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		return messages.Secret{}, messages.Malformed.Because("algorithm %.16q is not EdDSA, ES256, RS256 or PS256", algorithm)
	}
	if err != nil {
		return messages.Secret{}, fmt.Errorf("make a signing key: %w", err)
	}
	key := jose.JSONWebKey{Key: private, Algorithm: algorithm, Use: "sig"}
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return messages.Secret{}, fmt.Errorf("name a signing key: %w", err)
	}
	key.KeyID = base64.RawURLEncoding.EncodeToString(sum)
	document, err := json.Marshal(key)
	return messages.NewSecret(string(document)), err
}

// signer is the one key of a provider, as the protocol library wants it.
type signer struct{ jwk jose.JSONWebKey }

func openKey(document messages.Secret) (signer, error) {
	var s signer
	if err := json.Unmarshal([]byte(document.Reveal()), &s.jwk); err != nil || s.jwk.IsPublic() || !s.jwk.Valid() || s.jwk.KeyID == "" {
		return s, errors.New("the signing key is not a private JWK with a kid")
	}
	if _, err := op.SignerFromKey(s); err != nil {
		return s, errors.New("the signing key does not fit its algorithm")
	}
	return s, nil
}

func (s signer) ID() string { return s.jwk.KeyID }
func (s signer) SignatureAlgorithm() jose.SignatureAlgorithm {
	return jose.SignatureAlgorithm(s.jwk.Algorithm)
}
func (s signer) Key() any { return s.jwk.Key }

// published is its public half.
type published struct{ jwk jose.JSONWebKey }

func (s signer) public() published { return published{s.jwk.Public()} }

func (p published) ID() string { return p.jwk.KeyID }
func (p published) Algorithm() jose.SignatureAlgorithm {
	return jose.SignatureAlgorithm(p.jwk.Algorithm)
}
func (p published) Use() string { return "sig" }
func (p published) Key() any    { return p.jwk.Key }
