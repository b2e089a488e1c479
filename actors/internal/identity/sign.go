package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"

	"github.com/cotal-ai/authplane/messages"
)

// claims is the signed form of a bearer. Its times are Unix seconds.
type claims struct {
	Issuer    string `json:"iss"`
	Subject   string `json:"sub"`
	Audience  string `json:"aud"`
	IssuedAt  int64  `json:"iat"`
	NotBefore int64  `json:"nbf"`
	Expires   int64  `json:"exp"`
	Version   int64  `json:"ver"`
	Act       act    `json:"act"`
}

type act struct {
	Owner        string   `json:"owner"`
	Actor        string   `json:"actor"`
	Scope        []string `json:"scope"`
	Parent       string   `json:"parent,omitempty"`
	UID          string   `json:"uid"`
	CredentialID string   `json:"credentialId"`
	Profile      string   `json:"profile,omitempty"`
	Instance     *process `json:"instance,omitempty"`
}

// process is the signed form of a Process.
type process struct {
	Endpoint     string `json:"endpoint"`
	Name         string `json:"name"`
	Epoch        uint64 `json:"epoch"`
	CredentialID string `json:"credentialId"`
}

// Sign makes the bearer that says b, under the active key. Fractions of a second
// are dropped, so that it never outlives what was asked. Whatever Sign accepts
// verifies; what would not is Malformed.
//
// Call it only when the credential that b names is durable.
func (k *Keyring) Sign(b Bearer) (messages.Secret, error) {
	if err := b.check(); err != nil {
		return messages.Secret{}, messages.Malformed.From(err)
	}
	payload, err := json.Marshal(k.claimsOf(b))
	if err != nil {
		return messages.Secret{}, err
	}
	size := len(k.header) + base64.RawURLEncoding.EncodedLen(len(payload)) + 1 + base64.RawURLEncoding.EncodedLen(ed25519.SignatureSize)
	if size > MaxBearer {
		return messages.Secret{}, messages.Malformed.Because("the bearer would exceed %d bytes", MaxBearer)
	}
	token := make([]byte, 0, size)
	token = append(token, k.header...)
	token = base64.RawURLEncoding.AppendEncode(token, payload)
	signature := ed25519.Sign(k.keys[k.active].private, token)
	token = append(token, '.')
	token = base64.RawURLEncoding.AppendEncode(token, signature)
	return messages.NewSecret(string(token)), nil
}

func (k *Keyring) claimsOf(b Bearer) claims {
	scope := b.Scope
	if scope == nil {
		scope = []string{}
	}
	issued := b.IssuedAt.Unix()
	var instance *process
	if p := b.Process; !p.IsZero() {
		instance = &process{Endpoint: p.Endpoint, Name: p.Instance, Epoch: p.Epoch, CredentialID: p.CredentialID}
	}
	return claims{
		Issuer: k.issuer, Subject: b.Principal.Owner, Audience: k.space,
		IssuedAt: issued, NotBefore: issued, Expires: b.Expires.Unix(), Version: bearerVersion,
		Act: act{Owner: b.Principal.Owner, Actor: b.Principal.Actor, Scope: scope, Parent: b.Parent.String(),
			UID: b.UID, CredentialID: b.CredentialID, Profile: b.Profile, Instance: instance},
	}
}

func encodeHeader(kid string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"` + algorithm + `","typ":"` + bearerType + `","kid":"` + kid + `"}`))
}
