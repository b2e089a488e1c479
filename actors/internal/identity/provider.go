package identity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/cotal-ai/authplane/messages"
)

// maxProviderToken bounds a provider's token, in bytes.
const maxProviderToken = 16 << 10

// Algorithms lists every signature algorithm a provider may be configured with.
// All are asymmetric: a public key can never be taken for a shared secret.
func Algorithms() []string { return []string{"EdDSA", "ES256", "RS256", "PS256"} }

// ProviderConfig says which identity provider is trusted and how it is asked.
// Issuer and Audience are required, everything else has a default.
type ProviderConfig struct {
	// Issuer is compared with a token's `iss` byte for byte; a trailing slash counts.
	Issuer string
	// Audience is the client id that tokens must be for, and for nobody else.
	Audience string
	// Algorithms is the allow list, of Algorithms(); empty allows all of them.
	Algorithms []string
	// JWKSURL pins where the keys are; empty finds it by discovery. It must be https,
	// or http on a loopback address written as digits.
	JWKSURL string
	// JWKS pins the keys themselves, as an RFC 7517 document. Nothing is then fetched.
	JWKS []byte
	// HTTP carries the requests, for its roots and proxy. Its redirect policy and
	// timeout are not used: redirects are refused, Timeout holds.
	HTTP *http.Client
	// Now is the clock; the default is time.Now.
	Now func() time.Time

	// Timeout bounds one fetch of the keys, discovery included; default 5 s. Too
	// short and a slow provider counts as unreachable; it is also the longest that
	// an exchange hangs on a dead one.
	Timeout time.Duration
	// CoolDown is the least time between two fetches; default 5 s. Tokens with
	// unknown keys cause no more fetches than this, and a key that a provider
	// introduces may be refused for as long.
	CoolDown time.Duration
	// RefreshAfter is the age at which cached keys are fetched anew; default 5 min.
	// It is how long a key that the provider withdrew may still be honoured.
	RefreshAfter time.Duration
	// StaleFor is the age at which cached keys are no longer used although the
	// provider cannot be reached; default 4 h.
	StaleFor time.Duration
}

// Subject is whom a provider vouched for.
type Subject struct {
	// Issuer is the configured one: the one to derive the owner from.
	Issuer string
	// Subject is the provider's name of the person: not empty, clean UTF-8.
	Subject string
	// Expires is when the proof ends, rounded down to a second. Within the tolerance
	// it may lie before now; no bearer may outlive it.
	Expires time.Time
}

// Provider verifies the tokens of one identity provider. It may be used by many
// goroutines at once, starts none, and asks the provider nothing before the first
// token comes.
type Provider struct {
	issuer, audience string
	algorithms       []string
	now              func() time.Time
	keys             *providerKeys
}

// NewProvider checks a configuration; it does not ask the provider anything, so
// that one that cannot be reached keeps nobody from starting. What is wrong with
// it is Malformed, every problem listed.
func NewProvider(config ProviderConfig) (*Provider, error) {
	config = withDefaults(config)
	if err := config.validate(); err != nil {
		return nil, err
	}
	p := &Provider{issuer: config.Issuer, audience: config.Audience, algorithms: config.Algorithms, now: config.Now}
	if config.JWKS != nil {
		keys, err := readKeySet(config.JWKS)
		if err != nil {
			return nil, messages.Malformed.Because("the pinned keys: %s", err)
		}
		p.keys = pinnedKeys(keys)
		return p, nil
	}
	p.keys = fetchedKeys(config)
	return p, nil
}

func withDefaults(c ProviderConfig) ProviderConfig {
	if len(c.Algorithms) == 0 {
		c.Algorithms = Algorithms()
	}
	c.Algorithms = slices.Clone(c.Algorithms)
	if c.Now == nil {
		c.Now = time.Now
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{{&c.Timeout, 5 * time.Second}, {&c.CoolDown, 5 * time.Second}, {&c.RefreshAfter, 5 * time.Minute}, {&c.StaleFor, 4 * time.Hour}} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	return c
}

func (c ProviderConfig) validate() error {
	var problems []string
	note := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	note(checkText("issuer", c.Issuer) != nil, "an issuer is required")
	note(c.Audience == "", "an audience is required")
	for _, name := range c.Algorithms {
		note(!slices.Contains(Algorithms(), name), "algorithm %.16q is not one of %s", name, strings.Join(Algorithms(), " "))
	}
	note(c.JWKS != nil && c.JWKSURL != "", "either the keys or their URL can be pinned, not both")
	if c.JWKS == nil {
		where := c.JWKSURL
		if where == "" {
			where = c.Issuer
		}
		if err := checkURL(where); err != nil {
			problems = append(problems, err.Error())
		}
	}
	note(c.Timeout < 0 || c.CoolDown < 0 || c.RefreshAfter < 0 || c.StaleFor < 0, "a duration is negative")
	if problems != nil {
		return messages.Malformed.Because("identity provider: %s", strings.Join(problems, "; "))
	}
	return nil
}

// Verify reads a provider's token. An empty one is ProofMissing, one that has run
// out is ProofExpired, anything else wrong with it ProofInvalid. ProviderUnreachable
// says nothing about the token: the provider's keys could not be had.
func (p *Provider) Verify(ctx context.Context, token string) (Subject, error) {
	if token == "" {
		return Subject{}, messages.ProofMissing
	}
	header, err := p.readHeader(token)
	if err != nil {
		return Subject{}, invalid(err)
	}
	keys, err := p.keys.find(ctx, header)
	if err != nil {
		return Subject{}, err
	}
	payload, err := p.open(ctx, token, keys)
	if err != nil {
		return Subject{}, invalid(err)
	}
	c, err := readProviderClaims(payload)
	if err != nil {
		return Subject{}, invalid(err)
	}
	return p.subjectOf(c)
}

// open verifies the signature. Issuer, audience and times are checked by us, since
// the library lets some issuers deviate and takes an audience of many.
func (p *Provider) open(ctx context.Context, token string, keys *oidc.StaticKeySet) (json.RawMessage, error) {
	verifier := oidc.NewVerifier(p.issuer, keys, &oidc.Config{
		SupportedSigningAlgs: p.algorithms, SkipClientIDCheck: true, SkipExpiryCheck: true, SkipIssuerCheck: true,
	})
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		return nil, errors.New("the signature does not hold, or the claims are malformed")
	}
	var payload json.RawMessage
	return payload, verified.Claims(&payload)
}

// proofHeader is what selects the key of a provider's token.
type proofHeader struct {
	algorithm string
	kid       string
}

// readHeader refuses, before any key is looked for, tokens that are not compact,
// not signed as configured, or that bring or point at a key of their own.
func (p *Provider) readHeader(token string) (proofHeader, error) {
	var h proofHeader
	if len(token) > maxProviderToken {
		return h, errors.New("the token is too large")
	}
	if strings.Count(token, ".") != 2 {
		return h, errors.New("not a compact JWS")
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token[:strings.IndexByte(token, '.')])
	if err != nil {
		return h, errors.New("the header is not base64url")
	}
	err = readObject(raw, func(name string, value json.RawMessage) error {
		switch name {
		case "alg":
			return readString(value, &h.algorithm)
		case "kid":
			return readString(value, &h.kid)
		case "typ":
			return checkProofType(value)
		case "jku", "jwk", "x5u", "x5c", "crit", "b64":
			return errors.New("refused")
		}
		return nil
	}, "alg")
	if err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	if !slices.Contains(p.algorithms, h.algorithm) {
		return h, errors.New("the algorithm is not one this provider signs with")
	}
	return h, nil
}

// checkProofType keeps access tokens and other typed tokens of the same provider
// from being taken for proofs of identity.
func checkProofType(value json.RawMessage) error {
	var typ string
	if err := readString(value, &typ); err != nil {
		return err
	}
	if !strings.EqualFold(typ, "JWT") {
		return errors.New("not that of an identity token")
	}
	return nil
}
