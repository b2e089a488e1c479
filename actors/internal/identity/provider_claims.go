package identity

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// providerClaims are the claims of a provider's token that decide anything.
type providerClaims struct {
	issuer   string
	subject  string
	audience []string
	// Times are Unix seconds as the provider gave them: RFC 7519 allows fractions.
	expires, issuedAt, notBefore float64
}

func readProviderClaims(payload []byte) (providerClaims, error) {
	var c providerClaims
	err := readObject(payload, func(name string, value json.RawMessage) error {
		switch name {
		case "iss":
			return readString(value, &c.issuer)
		case "sub":
			return readString(value, &c.subject)
		case "aud":
			return readAudience(value, &c.audience)
		case "exp":
			return readSeconds(value, &c.expires)
		case "iat":
			return readSeconds(value, &c.issuedAt)
		case "nbf":
			return readSeconds(value, &c.notBefore)
		}
		return nil
	}, "iss", "sub", "aud", "exp", "iat")
	return c, err
}

// subjectOf checks the claims against the configuration and the clock.
func (p *Provider) subjectOf(c providerClaims) (Subject, error) {
	switch {
	case c.issuer != p.issuer:
		return Subject{}, messages.ProofInvalid.Because("another issuer")
	case len(c.audience) != 1 || c.audience[0] != p.audience:
		return Subject{}, messages.ProofInvalid.Because("it is not for us alone: its audience is not exactly the one that the space has at its provider")
	}
	if err := checkText("subject", c.subject); err != nil {
		return Subject{}, invalid(err)
	}
	now := float64(p.now().UnixMilli()) / 1000
	tolerance := Tolerance.Seconds()
	switch {
	case c.issuedAt > now+tolerance, c.notBefore > now+tolerance:
		return Subject{}, messages.ProofInvalid.Because("it is dated ahead of our clock")
	case c.expires+tolerance <= now:
		return Subject{}, messages.ProofExpired
	}
	return Subject{Issuer: p.issuer, Subject: c.subject, Expires: time.Unix(int64(math.Floor(c.expires)), 0).UTC()}, nil
}

// readAudience reads `aud`: one string, or a list of them.
func readAudience(value json.RawMessage, into *[]string) error {
	if len(value) > 0 && value[0] == '"' {
		*into = make([]string, 1)
		return readString(value, &(*into)[0])
	}
	return readStrings(value, into, 16)
}

// readSeconds reads a NumericDate: a number, perhaps with a fraction, between 1970
// and the year 5138.
func readSeconds(value json.RawMessage, into *float64) error {
	if len(value) == 0 || value[0] < '0' || value[0] > '9' {
		return errors.New("not a time")
	}
	if err := json.Unmarshal(value, into); err != nil || *into >= 1e11 {
		return errors.New("not a time")
	}
	return nil
}
