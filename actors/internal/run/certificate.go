package run

import (
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// certificateKind tells certificates from whatever else is signed with the same key.
const certificateKind = "run-caller"

// Certificates say whose key a key is. They are signed by a key of the account DATA, and
// are no users: no server lets anybody in with one.
type Certificates struct {
	space  string
	signer nkeys.KeyPair
	issuer string
}

// NewCertificates are those of one space.
func NewCertificates(space string, signer nkeys.KeyPair) (*Certificates, error) {
	issuer, err := signer.PublicKey()
	if err != nil {
		return nil, messages.KeysUnusable.From(err)
	}
	return &Certificates{space: space, signer: signer, issuer: issuer}, nil
}

func (c *Certificates) name() string { return "cotal:run-caller:" + c.space }

// Caller is whose key a certificate names.
type Caller struct {
	Principal messages.Principal
	UID       string
	Key       string
	// Expires bounds what the key may ask for the first time.
	Expires time.Time
}

// Sign certifies that a key is a caller's.
func (c *Certificates) Sign(caller Caller) (string, error) {
	if !nkeys.IsValidPublicUserKey(caller.Key) {
		return "", messages.Malformed.Because("the key is no public user key")
	}
	claims := jwt.NewGenericClaims(caller.Key)
	claims.Name, claims.Expires = c.name(), caller.Expires.Unix()
	claims.Data = map[string]any{"kind": certificateKind, "owner": caller.Principal.Owner, "actor": caller.Principal.Actor, "uid": caller.UID}
	token, err := claims.Encode(c.signer)
	if err != nil {
		return "", messages.InternalFault.From(err)
	}
	return token, nil
}

// Verify reads a certificate of ours, whether or not it has run out.
func (c *Certificates) Verify(token string) (Caller, error) {
	claims, err := jwt.DecodeGeneric(token)
	if err != nil {
		return Caller{}, messages.RunUnwitnessed.Because("the certificate does not verify")
	}
	text := func(field string) string { s, _ := claims.Data[field].(string); return s }
	caller := Caller{Principal: messages.Principal{Owner: text("owner"), Actor: text("actor")}, UID: text("uid"), Key: claims.Subject, Expires: time.Unix(claims.Expires, 0)}
	if claims.Issuer != c.issuer || claims.Name != c.name() || text("kind") != certificateKind || !nkeys.IsValidPublicUserKey(caller.Key) ||
		claims.Expires == 0 || names.CheckPrincipal(caller.Principal) != nil || names.CheckUID(caller.UID) != nil {
		return Caller{}, messages.RunUnwitnessed.Because("the certificate is not of this space")
	}
	return caller, nil
}
