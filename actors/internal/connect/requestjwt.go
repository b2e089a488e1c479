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

// requestClaims is the part of a request's claims that decides something, or is
// worth telling.
type requestClaims struct {
	audience, issuer                   string
	serverName, serverID, serverXKey   string
	userNkey                           string
	clientHost, clientKind, clientName string
	token                              string
	kind                               string
	version                            int
}

// readRequest decodes a request's token and verifies it against its own issuer,
// once. Who the issuer is remains to be checked. What it returns shares nothing
// with the token, nor with the buffer it decodes into.
func readRequest(token []byte, decoded *[]byte) (*requestClaims, error) {
	header, rest, _ := bytes.Cut(token, []byte{'.'})
	payload, signature, whole := bytes.Cut(rest, []byte{'.'})
	if !whole {
		return nil, errors.New("it is not a token of three parts")
	}
	if err := checkHeader(header); err != nil {
		return nil, err
	}
	claims, err := decodeClaims(payload, decoded)
	if err != nil {
		return nil, err
	}
	signed := token[:len(header)+1+len(payload)]
	if err := checkSignature(claims.issuer, signed, signature); err != nil {
		return nil, err
	}
	if claims.audience != requestAudience || claims.kind != requestType || claims.version != tokenVersion {
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

func decodeClaims(payload []byte, decoded *[]byte) (*requestClaims, error) {
	raw, err := base64.RawURLEncoding.AppendDecode(*decoded, payload)
	if err != nil {
		return nil, errors.New("its claims are not base64url")
	}
	*decoded = raw
	claims := new(requestClaims)
	if err := claims.read(&scanner{data: raw}); err != nil {
		return nil, err
	}
	return claims, nil
}

// read takes what it wants from the claims. Of a name that stands there twice the
// last one counts, as it does for the library.
func (c *requestClaims) read(s *scanner) error {
	err := s.object(func(name []byte) error {
		switch string(name) {
		case "aud":
			return s.text(&c.audience)
		case "iss":
			return s.text(&c.issuer)
		case "nats":
			return c.readBody(s)
		}
		return s.skip()
	})
	if err == nil && !s.end() {
		return errScan
	}
	return err
}

func (c *requestClaims) readBody(s *scanner) error {
	return s.object(func(name []byte) error {
		switch string(name) {
		case "server_id":
			return s.object(texts(s, "name", &c.serverName, "id", &c.serverID, "xkey", &c.serverXKey))
		case "user_nkey":
			return s.text(&c.userNkey)
		case "client_info":
			return s.object(texts(s, "host", &c.clientHost, "kind", &c.clientKind, "", nil))
		case "connect_opts":
			return s.object(texts(s, "auth_token", &c.token, "name", &c.clientName, "", nil))
		case "type":
			return s.text(&c.kind)
		case "version":
			return s.number(&c.version)
		}
		return s.skip()
	})
}

// texts reads up to three members that are strings and skips the others.
func texts(s *scanner, a string, intoA *string, b string, intoB *string, c string, intoC *string) func([]byte) error {
	return func(name []byte) error {
		switch string(name) {
		case a:
			return s.text(intoA)
		case b:
			return s.text(intoB)
		case c:
			if intoC != nil {
				return s.text(intoC)
			}
		}
		return s.skip()
	}
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
