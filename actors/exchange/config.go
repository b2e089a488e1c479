package exchange

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/internal/face"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

const (
	// acceptedWithin is how long a close waits for requests that were accepted.
	acceptedWithin = 10 * time.Second
	// closeWithin leaves room for cutting off what is left then, and for the close.
	closeWithin = acceptedWithin * 3 / 2
)

// Keys sign and verify bearers, and say what they are verified with; an *identity.Keyring does.
type Keys interface {
	face.Signer
	face.KeySet
	face.Verifier
}

// Config is what the exchange needs.
type Config struct {
	// Space is the tenant's name, and the audience of its bearers.
	Space string
	// Reader and Writer are the paths of the actors that are asked.
	Reader, Writer string
	// Desk is the path of whoever knows the plane's operations, and Observer that of
	// whoever knows the servers.
	Desk, Observer string
	Keys           Keys
	// Provider verifies people's proofs; nil leaves machines only.
	Provider *identity.Provider
	// Issuer is the provider's configured issuer, which owners are derived from;
	// empty without one.
	Issuer      string
	OwnerSecret messages.Secret
	// BearerLifetime is the longest life of a bearer; 0 is face.MaxLife.
	BearerLifetime time.Duration
	// Outlives is the longest life of a connection where nobody can be dropped; 0 where
	// that can be done.
	Outlives time.Duration
	// Control shows the space.
	Control face.Control
	// Instances knows the gates of services' instances.
	Instances face.Instances
	// Enrolments enrols machines.
	Enrolments face.Enrolments
	// Controllers answers controllers, and lists them.
	Controllers face.Controllers
	// Runs knows the runs, and ControllerRuns answers controllers about them.
	Runs           face.Runs
	ControllerRuns face.ControllerRuns
	// Capability opens the loopback face.
	Capability messages.Secret
	// Address is the loopback face's.
	Address *Address
	// Public is the other face; nil leaves it shut.
	Public *PublicConfig
	// FaultInjection opens POST /v1/debug/kill.
	FaultInjection bool
	// Metrics counts what is answered; nil counts nothing.
	Metrics *face.Metrics
	// MetricsPage serves GET /metrics; nil leaves the path out.
	MetricsPage http.Handler
}

// PublicConfig is the face that clients elsewhere use.
type PublicConfig struct {
	Address *Address
	// URL is how it is reached from outside, without a trailing slash; empty is the
	// address itself.
	URL string
	// NATSURL and Sentinel are told to clients: where to connect, and the powerless
	// creds, or the path of them, to connect with.
	NATSURL, Sentinel string
	// TLS makes the face speak it; nil leaves that to a proxy.
	TLS *tls.Config
}

// Spec describes the exchange as a child of its space.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{
		Name:        "exchange",
		CloseWithin: closeWithin,
		New:         func(life *supervisor.Life) actor.Actor { return newExchange(life, config) },
	}
}
