package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Verify reads a bearer that was presented. Its signature, issuer, audience, times
// and the shape of every claim are checked, in this order; whether its principal
// is still granted anything is for the caller to find out.
//
// An empty token is ProofMissing, one that has run out (by more than Tolerance) is
// ProofExpired, everything else is ProofInvalid with a detail that names no claim's
// value. A bearer within the tolerance may have Expires before now.
func (k *Keyring) Verify(token string, now time.Time) (Bearer, error) {
	if token == "" {
		return Bearer{}, messages.ProofMissing
	}
	payload, err := k.open(token)
	if err != nil {
		return Bearer{}, invalid(err)
	}
	c, err := readClaims(payload)
	if err != nil {
		return Bearer{}, invalid(err)
	}
	b, err := k.bearerOf(c)
	if err != nil {
		return Bearer{}, invalid(err)
	}
	if err := checkClock(b, now); err != nil {
		return Bearer{}, err
	}
	return b, nil
}

func invalid(err error) error { return messages.ProofInvalid.Because("%s", err) }

// open checks the signature and gives the payload.
func (k *Keyring) open(token string) ([]byte, error) {
	if len(token) > MaxBearer {
		return nil, errors.New("the token is too large")
	}
	header, rest, _ := strings.Cut(token, ".")
	body, signature, found := strings.Cut(rest, ".")
	if !found {
		return nil, errors.New("not a compact JWS")
	}
	key, err := k.keyFor(header)
	if err != nil {
		return nil, err
	}
	var raw [ed25519.SignatureSize]byte
	if base64.RawURLEncoding.DecodedLen(len(signature)) != len(raw) {
		return nil, errors.New("the signature has the wrong size")
	}
	if n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(signature)); err != nil || n != len(raw) {
		return nil, errors.New("the signature is not base64url")
	}
	if !ed25519.Verify(key, []byte(token[:len(header)+1+len(body)]), raw[:]) {
		return nil, errors.New("the signature does not hold")
	}
	payload, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil {
		return nil, errors.New("the payload is not base64url")
	}
	return payload, nil
}

// keyFor finds the key a header names. Our own headers are known byte for byte;
// another one may only order the same three members otherwise.
func (k *Keyring) keyFor(header string) (ed25519.PublicKey, error) {
	if key, known := k.byHeader[header]; known {
		return key, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(header)
	if err != nil {
		return nil, errors.New("the header is not base64url")
	}
	var alg, typ, kid string
	err = readObject(raw, func(name string, value json.RawMessage) error {
		switch name {
		case "alg":
			return readString(value, &alg)
		case "typ":
			return readString(value, &typ)
		case "kid":
			return readString(value, &kid)
		}
		return errUnknownField
	})
	switch key, known := k.byKID[kid]; {
	case err != nil:
		return nil, errors.New("the header has other members than alg, typ and kid")
	case alg != algorithm || typ != bearerType:
		return nil, errors.New("the algorithm or type is not that of a bearer")
	case !known:
		return nil, errors.New("the signing key is not known")
	default:
		return key, nil
	}
}

// bearerOf checks every claim but the clock.
func (k *Keyring) bearerOf(c claims) (Bearer, error) {
	switch {
	case c.Issuer != k.issuer:
		return Bearer{}, errors.New("another issuer")
	case c.Audience != k.space:
		return Bearer{}, errors.New("another audience")
	case c.Version != bearerVersion:
		return Bearer{}, errors.New("another version")
	case c.Act.Owner != c.Subject:
		return Bearer{}, errors.New("act.owner is not sub")
	}
	b := Bearer{
		Principal: messages.Principal{Owner: c.Act.Owner, Actor: c.Act.Actor},
		Scope:     c.Act.Scope, UID: c.Act.UID, CredentialID: c.Act.CredentialID, Profile: c.Act.Profile,
		IssuedAt: time.Unix(c.IssuedAt, 0).UTC(), Expires: time.Unix(c.Expires, 0).UTC(),
	}
	if c.Act.Parent != "" {
		parent, err := names.ParsePrincipal(c.Act.Parent)
		if err != nil {
			return Bearer{}, errors.New("the parent is not a principal")
		}
		b.Parent = parent
	}
	if p := c.Act.Instance; p != nil {
		b.Process = Process{Endpoint: p.Endpoint, Instance: p.Name, Epoch: p.Epoch, CredentialID: p.CredentialID}
		if err := b.Process.check(); err != nil { // an empty one would pass for none
			return Bearer{}, err
		}
	}
	if c.NotBefore != c.IssuedAt {
		return Bearer{}, errors.New("nbf is not iat")
	}
	return b, b.check()
}

// checkClock anchors the lifetime to our clock: what is not dated ahead ends, its
// life being bounded, at most MaxBearerLife and the tolerance from now.
func checkClock(b Bearer, now time.Time) error {
	switch {
	case b.IssuedAt.After(now.Add(Tolerance)):
		return messages.ProofInvalid.Because("it is dated ahead of our clock")
	case !now.Before(b.Expires.Add(Tolerance)):
		return messages.ProofExpired
	}
	return nil
}

func readClaims(payload []byte) (claims, error) {
	var c claims
	err := readObject(payload, func(name string, value json.RawMessage) error {
		switch name {
		case "iss":
			return readString(value, &c.Issuer)
		case "sub":
			return readString(value, &c.Subject)
		case "aud":
			return readString(value, &c.Audience)
		case "iat":
			return readInteger(value, &c.IssuedAt)
		case "nbf":
			return readInteger(value, &c.NotBefore)
		case "exp":
			return readInteger(value, &c.Expires)
		case "ver":
			return readInteger(value, &c.Version)
		case "act":
			return readAct(value, &c.Act)
		}
		return errUnknownField
	}, "iss", "sub", "aud", "iat", "nbf", "exp", "ver", "act")
	return c, err
}

// readAct reads who acts. An absent scope is an empty one.
func readAct(value json.RawMessage, into *act) error {
	return walkObject(value, func(name string, value json.RawMessage) error {
		switch name {
		case "owner":
			return readString(value, &into.Owner)
		case "actor":
			return readString(value, &into.Actor)
		case "scope":
			return readStrings(value, &into.Scope, MaxScope)
		case "parent":
			return readPresent(value, &into.Parent)
		case "uid":
			return readString(value, &into.UID)
		case "credentialId":
			return readString(value, &into.CredentialID)
		case "profile":
			return readPresent(value, &into.Profile)
		case "instance":
			into.Instance = &process{}
			return readProcess(value, into.Instance)
		}
		return errUnknownField
	}, "owner", "actor", "uid", "credentialId")
}

// readProcess reads which process of an instance acts.
func readProcess(value json.RawMessage, into *process) error {
	return walkObject(value, func(name string, value json.RawMessage) error {
		switch name {
		case "endpoint":
			return readString(value, &into.Endpoint)
		case "name":
			return readString(value, &into.Name)
		case "epoch":
			var epoch int64
			err := readInteger(value, &epoch)
			into.Epoch = uint64(epoch) // digits alone: never below 0
			return err
		case "credentialId":
			return readString(value, &into.CredentialID)
		}
		return errUnknownField
	}, "endpoint", "name", "epoch", "credentialId")
}
