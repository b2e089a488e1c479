package space

import (
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nkeys"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/identity"
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
	// NATSURL is where the servers listen: one or more comma-separated URLs, each a
	// scheme (nats, tls, ws or wss), a host and a port.
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

	// NoStandby makes a plane that another process runs a failure to start; without it
	// this process answers connects beside the other and waits to take over.
	NoStandby bool
	// ServersLost names servers that are gone for good: a process whose connections
	// were on one of them counts as gone. Only an operator can know that.
	ServersLost []string

	// Eviction says how it is proved that somebody is connected nowhere any more, and with
	// that whether the system account is ours: EvictionSweep (default) or EvictionExpiry.
	Eviction string
	// BearerLifetime is the longest life of a bearer, and of a connection that is admitted,
	// in whole seconds up to 900, which zero is. It bounds what EvictionExpiry waits for, so
	// it must be the same in every process of the space; and where it is made shorter,
	// nobody may be retired until what was issued before has run out.
	BearerLifetime time.Duration

	// ControllerLifetime is how long the standing credentials of controllers run, 5 s to
	// 86,400 s in whole seconds; zero is the longest. They cannot be taken back before, so
	// that it bounds how long a controller that was superseded may stay connected, as
	// itself and without a say in what its successor does.
	ControllerLifetime time.Duration

	// ConnectionLifetime is how long the JWT of a standing connection runs; it is
	// renewed at half of it. Zero is 15 minutes. Shorter ones cost a handshake each
	// time and make every hiccup of a server a failed renewal.
	ConnectionLifetime time.Duration

	// Platform tells what whoever hosts this space has assigned to it; nil where nobody
	// does. See Handle.Readiness.
	Platform messages.Assignments

	// ObserveRequests has requests for runs witnessed that their callers did not sign. It
	// keeps callers from being told that no service listens.
	ObserveRequests bool

	// Footprint is what every machine gets besides its grant, in the account of the
	// principals: durable consumers and rows of streams and buckets that are there. It is
	// made when a machine is enrolled or granted, and removed when its incarnation has
	// ended. Empty is nothing.
	Footprint messages.Footprint

	// FaultInjection opens POST /v1/debug/kill.
	FaultInjection bool
	// Middleware puts the library's receiver middleware before every actor, by the
	// actor's path, for tracing and for fault injection; see supervisor.WithMiddleware.
	// What it sees may hold secrets. Nil leaves the actors bare.
	Middleware func(path string) []actor.ReceiverMiddleware

	// Logger receives structured logs; nil discards them.
	Logger *slog.Logger
	// Metrics registers the collectors of this space; nil keeps them private.
	Metrics prometheus.Registerer
}

// The ways of Config.Eviction.
const (
	// EvictionSweep asks every server who is connected and has connections dropped,
	// through the system account.
	EvictionSweep = "sweep"
	// EvictionExpiry is for servers that somebody else runs: the keys of the system
	// account are not read. Nobody is dropped; it is waited until every connection's
	// permission has run out. Responders hear every connect, since a process that stands
	// still cannot be kicked, and it keeps the plane until its servers miss it.
	EvictionExpiry = "expiry"
)

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

// Validate lists everything that is wrong with c in one error, of type Problems, or
// returns nil. It connects to nothing; of files it looks only whether those can be
// read that clients are told of or TLS needs.
func (c Config) Validate() error {
	var found Problems
	if err := names.CheckSpace(c.Space); err != nil {
		found.note("space", "%s", strings.TrimPrefix(messages.PublicText(err), messages.Malformed.Message+": "))
	}
	if c.NATSURL == "" {
		found.note("nats_url", "is missing")
	} else {
		found.servers("nats_url", c.NATSURL)
	}
	if c.StateDir == "" {
		found.note("state_dir", "is missing")
	}
	if c.SecretsDir == "" && c.Secrets == nil {
		found.note("secrets_dir", "is missing")
	}
	if c.SecretsDir != "" && c.Secrets != nil {
		found.note("secrets_dir", "is given beside a store of secrets; one of them is enough")
	}
	if c.Listen != "" && !isLoopback(c.Listen) {
		found.note("listen", "%s is not a port of a loopback address, such as 127.0.0.1:7070", c.Listen)
	}
	c.checkFigures(&found)
	c.checkServers(&found)
	c.checkFootprint(&found)
	if c.Provider != nil {
		c.Provider.check(&found)
	}
	if c.Public != nil {
		c.Public.check(&found, c.SentinelCreds)
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

func (c Config) checkFigures(found *Problems) {
	switch c.Replicas {
	case 0, 1, 3, 5:
	default:
		found.note("replicas", "%d is none of 1, 3, 5", c.Replicas)
	}
	if c.Responders != 0 && (c.Responders < 2 || c.Responders > maxResponders) {
		found.note("responders", "%d is not 2 to %d", c.Responders, maxResponders)
	}
	switch c.Eviction {
	case "", EvictionSweep, EvictionExpiry:
	default:
		found.note("eviction", "%.40q is neither %s nor %s", c.Eviction, EvictionSweep, EvictionExpiry)
	}
	if l := c.BearerLifetime; l < 0 || l > identity.MaxBearerLife || l%time.Second != 0 {
		found.note("bearer_lifetime", "%s is not whole seconds up to %s", l, identity.MaxBearerLife)
	}
	if l := c.ControllerLifetime; l != 0 && controller.CheckStanding(l) != nil {
		found.note("controller_lifetime", "%s is not whole seconds from %s to %s", l, controller.MinStanding, controller.MaxStanding)
	}
	if c.ConnectionLifetime < 0 {
		found.note("connection_lifetime", "%s is negative", c.ConnectionLifetime)
	}
}

func (c Config) checkServers(found *Problems) {
	if c.Servers != nil && len(c.Servers) == 0 {
		found.note("servers", "an empty list would answer nobody; leave it out to answer every server")
	}
	for _, key := range c.Servers {
		if !nkeys.IsValidPublicServerKey(key) {
			found.note("servers", "%.70q is not the public key of a server, N and 55 more characters", key)
		}
	}
}

func (p ProviderConfig) check(found *Problems) {
	found.secureURL("idp.issuer", p.Issuer)
	if p.JWKSURL != "" {
		found.secureURL("idp.jwks_url", p.JWKSURL)
	}
	for _, alg := range p.Algorithms {
		switch alg {
		case "EdDSA", "ES256", "RS256", "PS256":
		default:
			found.note("idp.algorithms", "%q is none of EdDSA, ES256, RS256, PS256", alg)
		}
	}
}

// check looks at the public face, which tells clients the sentinel creds.
func (p PublicConfig) check(found *Problems, sentinel string) {
	if sentinel == "" {
		found.note("sentinel_creds", "is missing; the public face tells clients what stands in it")
	} else {
		found.file("sentinel_creds", sentinel)
	}
	if _, _, err := net.SplitHostPort(p.Listen); err != nil {
		found.note("public.listen", "must be host:port")
	}
	if p.URL != "" {
		found.secureURL("public.url", p.URL)
	}
	if p.ClientNATSURL != "" {
		found.servers("public.client_nats_url", p.ClientNATSURL)
	}
	switch {
	case p.CertFile == "" && p.KeyFile != "":
		found.note("public.cert_file", "is missing beside the key")
	case p.CertFile != "" && p.KeyFile == "":
		found.note("public.key_file", "is missing beside the certificate")
	case p.CertFile != "":
		found.file("public.cert_file", p.CertFile)
		found.file("public.key_file", p.KeyFile)
	}
}
