package space

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// SecretStore hands out the secrets of a space by name. Implementations may be
// called from several goroutines.
type SecretStore = trust.SecretStore

// Config says what one space is. Only Space, NATSURL, StateDir and one source of
// secrets are needed; Validate fills in nothing, Start applies the defaults.
type Config struct {
	// Space is the tenant's name, 1 to 32 characters of [a-z0-9_-].
	Space string
	// NATSURL is where the servers listen: one or more comma-separated
	// nats://, tls:// or ws(s):// URLs.
	NATSURL string
	// StateDir belongs to this process alone: instance id, capability, markers. It
	// is made, 0700, when it is missing.
	StateDir string
	// SecretsDir is a directory of 0600 files that replicas share; it is only read.
	// Empty when Secrets is given.
	SecretsDir string
	// Secrets is the alternative to SecretsDir.
	Secrets SecretStore
	// SentinelCreds is the path of the powerless creds that clients connect with;
	// it is told to clients and is not opened.
	SentinelCreds string

	// Provider is the company's identity provider; nil leaves machines only.
	Provider *ProviderConfig

	// Listen is the address of the loopback face; empty is 127.0.0.1 and a free
	// port. An address that is not loopback is refused.
	Listen string
	// Public opens the second face; nil leaves it shut.
	Public *PublicConfig

	// Replicas is how many copies of the authority stream the servers keep: 1
	// (default) or 3 or 5. It must be what the stream was made with.
	Replicas int
	// Responders is how many callout connections answer, 2 (default) to 4. With one, a
	// lost connection would cost the connects of the next seconds.
	Responders int
	// Servers lists the public keys of the servers whose connect requests are
	// answered; nil answers every server that holds the seal. An empty list that is
	// not nil is refused, since it would answer nobody.
	Servers []string

	// ConnectionLifetime is how long the JWT of a standing connection runs; it is
	// renewed at half of it. Zero is 15 minutes. Shorter ones cost a handshake each
	// time and make every hiccup of a server a failed renewal.
	ConnectionLifetime time.Duration

	// FaultInjection opens POST /v1/debug/kill.
	FaultInjection bool
	// Intercept wraps the Receive of every actor, by path; for fault injection in
	// tests of an embedding program. Nil leaves them bare.
	Intercept func(path string, next func(actor.Context)) func(actor.Context)

	// Logger receives structured logs; nil discards them.
	Logger *slog.Logger
	// Metrics registers the collectors of this space; nil keeps them private.
	Metrics prometheus.Registerer
}

// ProviderConfig names an identity provider and what of it is trusted.
type ProviderConfig struct {
	// Issuer is the exact `iss` of its tokens and where its discovery document lives.
	Issuer string
	// Audience is the exact and only `aud` accepted: the client id under which the
	// space is known to the provider. Empty is the space's name.
	Audience string
	// Algorithms lists what may sign, of EdDSA, ES256, RS256 and PS256; empty is
	// all of them.
	Algorithms []string
	// JWKSURL overrides discovery with a pinned key set address.
	JWKSURL string
	// JWKS pins the keys themselves, as a JWK set document; nothing is fetched then.
	JWKS []byte
}

// PublicConfig is the face that people and machines outside reach.
type PublicConfig struct {
	// Listen is the address it binds.
	Listen string
	// URL is how it is reached from outside, https unless loopback.
	URL string
	// CertFile and KeyFile give it TLS; both empty leaves that to a proxy.
	CertFile, KeyFile string
	// ClientNATSURL is the broker address told to clients; empty is NATSURL.
	ClientNATSURL string
}

// Limits and defaults of a space.
const (
	defaultListen     = "127.0.0.1:0"
	defaultReplicas   = 1
	defaultResponders = 2
	maxResponders     = 4
	closeGrace        = 30 * time.Second
)

// Validate lists everything that is wrong with c in one error, or returns nil. It
// opens nothing.
func (c Config) Validate() error {
	var problems []string
	note := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }

	if err := names.CheckSpace(c.Space); err != nil {
		note("space: %v", messages.PublicText(err))
	}
	if c.NATSURL == "" {
		note("nats_url: is missing")
	}
	if c.StateDir == "" {
		note("state_dir: is missing")
	}
	if (c.SecretsDir == "") == (c.Secrets == nil) {
		note("secrets: give a directory or a store, exactly one")
	}
	if c.Listen != "" && !isLoopback(c.Listen) {
		note("listen: %s is not a loopback address", c.Listen)
	}
	switch c.Replicas {
	case 0, 1, 3, 5:
	default:
		note("replicas: %d is none of 1, 3, 5", c.Replicas)
	}
	if c.Responders != 0 && (c.Responders < 2 || c.Responders > maxResponders) {
		note("responders: %d is not 2 to %d", c.Responders, maxResponders)
	}
	if c.Servers != nil && len(c.Servers) == 0 {
		note("servers: an empty list would answer nobody; leave it out to answer every server")
	}
	if c.Provider != nil {
		problems = append(problems, c.Provider.problems()...)
	}
	if c.Public != nil {
		problems = append(problems, c.Public.problems()...)
	}
	return joinProblems(problems)
}

func (p ProviderConfig) problems() []string {
	var problems []string
	if !isSecureURL(p.Issuer) {
		problems = append(problems, "idp.issuer: must be an https URL, or http on a loopback address")
	}
	if p.JWKSURL != "" && !isSecureURL(p.JWKSURL) {
		problems = append(problems, "idp.jwks_url: must be an https URL, or http on a loopback address")
	}
	for _, alg := range p.Algorithms {
		switch alg {
		case "EdDSA", "ES256", "RS256", "PS256":
		default:
			problems = append(problems, fmt.Sprintf("idp.algorithms: %q is none of EdDSA, ES256, RS256, PS256", alg))
		}
	}
	return problems
}

func (p PublicConfig) problems() []string {
	var problems []string
	if _, _, err := net.SplitHostPort(p.Listen); err != nil {
		problems = append(problems, "public.listen: must be host:port")
	}
	if p.URL != "" && !isSecureURL(p.URL) {
		problems = append(problems, "public.url: must be an https URL, or http on a loopback address")
	}
	if (p.CertFile == "") != (p.KeyFile == "") {
		problems = append(problems, "public.tls: give both the certificate and the key, or neither")
	}
	return problems
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func isSecureURL(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	if u.Scheme == "https" {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && err == nil && ip.IsLoopback()
}
