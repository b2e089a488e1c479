package connect

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"

	"github.com/nats-io/nkeys"
)

const (
	requestAudience = "nats-authorization-request"
	requestType     = "authorization_request"
	tokenVersion    = 2
)

// tokenHeader is {"typ":"JWT","alg":"ed25519-nkey"}, encoded: the header of every
// token that servers and we sign.
const tokenHeader = "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ"

// requestClaims is the part of a request's claims that decides something.
type requestClaims struct {
	Audience string `json:"aud"`
	Issuer   string `json:"iss"`
	Nats     struct {
		Server struct {
			Name string `json:"name"`
			ID   string `json:"id"`
			XKey string `json:"xkey"`
		} `json:"server_id"`
		UserNkey string `json:"user_nkey"`
		Client   struct {
			Host string `json:"host"`
			Kind string `json:"kind"`
		} `json:"client_info"`
		Options struct {
			Token string `json:"auth_token"`
			Name  string `json:"name"`
		} `json:"connect_opts"`
		Type    string `json:"type"`
		Version int    `json:"version"`
	} `json:"nats"`
}

// readRequest decodes a request's token and verifies it against its own issuer,
// once. Who the issuer is remains to be checked.
func readRequest(token []byte) (*requestClaims, error) {
	header, rest, _ := bytes.Cut(token, []byte{'.'})
	payload, signature, whole := bytes.Cut(rest, []byte{'.'})
	if !whole {
		return nil, errors.New("it is not a token of three parts")
	}
	if err := checkHeader(header); err != nil {
		return nil, err
	}
	claims, err := decodeClaims(payload)
	if err != nil {
		return nil, err
	}
	signed := token[:len(header)+1+len(payload)]
	if err := checkSignature(claims.Issuer, signed, signature); err != nil {
		return nil, err
	}
	if claims.Audience != requestAudience || claims.Nats.Type != requestType || claims.Nats.Version != tokenVersion {
		return nil, errors.New("it is not a connect request")
	}
	return claims, nil
}

func checkHeader(header []byte) error {
	if string(header) == tokenHeader {
		return nil // as every server of today writes it
	}
	raw, err := base64.RawURLEncoding.AppendDecode(nil, header)
	if err != nil {
		return errors.New("its header cannot be read")
	}
	var h struct {
		Type      string `json:"typ"`
		Algorithm string `json:"alg"`
	}
	if err := json.Unmarshal(raw, &h); err != nil || h.Type != "JWT" || h.Algorithm != "ed25519-nkey" {
		return errors.New("its header names another kind of token")
	}
	return nil
}

func decodeClaims(payload []byte) (*requestClaims, error) {
	raw, err := base64.RawURLEncoding.AppendDecode(make([]byte, 0, base64.RawURLEncoding.DecodedLen(len(payload))), payload)
	if err != nil {
		return nil, errors.New("its claims are not base64url")
	}
	claims := new(requestClaims)
	if err := json.Unmarshal(raw, claims); err != nil {
		return nil, errors.New("its claims cannot be read")
	}
	return claims, nil
}

// checkSignature accepts servers' keys alone.
func checkSignature(issuer string, signed, signature []byte) error {
	key, err := nkeys.Decode(nkeys.PrefixByteServer, []byte(issuer))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return errors.New("its issuer is not a server's key")
	}
	var raw [ed25519.SignatureSize]byte
	if base64.RawURLEncoding.DecodedLen(len(signature)) != len(raw) {
		return errors.New("its signature has the wrong size")
	}
	if _, err := base64.RawURLEncoding.Decode(raw[:], signature); err != nil || !ed25519.Verify(key, signed, raw[:]) {
		return errors.New("its signature does not hold")
	}
	return nil
}
