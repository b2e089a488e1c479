package face

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

// Config is what both faces need.
type Config struct {
	// Space is the tenant's name; it is the audience of every bearer.
	Space string
	// Authority reads and writes what is recorded. Required on the loopback face.
	Authority Authority
	// Operations ends incarnations. Required on the loopback face.
	Operations Operations
	// Bridge turns proofs into bearers. Required.
	Bridge *Bridge
	// Keys publishes the keys that bearers are verified with. Required.
	Keys KeySet
	// Roles names the permission profiles a grant may have besides the default one.
	Roles []string
	// EndsWithin is how long the connections of who is revoked may last where nobody can
	// drop them; 0 where they are dropped.
	EndsWithin time.Duration
	// Metrics counts; nil counts nothing.
	Metrics *Metrics
	// Logger receives one record a request, of refusals at most ten of a kind a second;
	// nil discards them.
	Logger *slog.Logger
	// Now is the clock of the failure windows and of bearers; nil is time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Face answers HTTP requests until it is told to stop. It starts no goroutine that
// outlives a request. A face that was drained or closed stays so.
type Face struct {
	config     Config
	name       string
	routes     routes
	capability messages.Secret

	control     Control   // of the loopback face
	instances   Instances // of the loopback face
	runs        Runs
	enrolments  Enrolments // of the loopback face
	controllers Controllers
	metricsPage http.Handler // of the loopback face
	public      PublicConfig // of the public face

	turns *turns
	// registering bounds the registrations, each of which may take a minute.
	registering        *turns
	streams            chan struct{} // counting semaphore of open event streams
	fences             chan struct{} // the same of those who wait for a fence
	proofFailures      *failures
	capabilityFailures *failures
	accepted           accepted
	// faults and refusals bound the log: strangers' mistakes hide no failure of ours.
	faults   *lines
	refusals *lines

	// draining ends when event streams must; ended, when everything must. They are
	// the two moments of this face's life, and so belong to it and not to a request.
	draining context.Context
	drain    context.CancelCauseFunc
	ended    context.Context
	end      context.CancelCauseFunc
}

func newFace(name string, c Config) *Face {
	c = c.withDefaults()
	f := &Face{
		config:             c,
		name:               name,
		turns:              newTurns(MaxWorking, MaxWaiting, MaxWait),
		registering:        newTurns(MaxRegistering, MaxWaiting, MaxWait),
		streams:            make(chan struct{}, MaxStreams),
		fences:             make(chan struct{}, MaxFences),
		proofFailures:      newFailures(c.Now),
		capabilityFailures: newFailures(c.Now),
		faults:             newLines(c.Now),
		refusals:           newLines(c.Now),
	}
	f.ended, f.end = context.WithCancelCause(context.Background())
	f.draining, f.drain = context.WithCancelCause(f.ended)
	return f
}

// Drain refuses new requests, ends the event streams at once, and waits until the
// accepted requests are answered. It fails with the context's error if some are
// left; those go on until Close.
func (f *Face) Drain(ctx context.Context) error {
	f.accepted.stop()
	f.drain(messages.ServiceClosing)
	return f.accepted.wait(ctx)
}

// Close refuses new requests, makes those in work give up, and waits until their
// handlers have returned.
func (f *Face) Close(ctx context.Context) error {
	f.accepted.stop()
	f.end(messages.ServiceClosing)
	return f.accepted.wait(ctx)
}

// Name is `loopback` or `public`.
func (f *Face) Name() string { return f.name }

// InFlight is how many requests are being worked on or wait for their turn.
func (f *Face) InFlight() int { return f.accepted.inFlight() }

// ServeHTTP is the one path every request takes.
func (f *Face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := newCall(f, w, r)
	if !f.accepted.begin() {
		w.Header().Set("Connection", "close")
		c.refuse(messages.ServiceClosing)
		c.report()
		return
	}
	defer f.accepted.end()
	defer c.flush()
	defer c.report()
	defer c.contain()
	if err := f.answer(c); err != nil {
		c.refuse(err)
	}
}

// answer decides, in this order, what can be decided most cheaply; the body is not
// read before the caller has shown that it may ask.
func (f *Face) answer(c *call) error {
	if c.r.Header["Origin"] != nil {
		return messages.OriginRefused
	}
	if err := c.find(f.routes); err != nil {
		return err
	}
	if c.to.guarded && !f.holdsCapability(c.r) {
		return f.failed(f.capabilityFailures, c, messages.CapabilityInvalid)
	}
	if c.to.closed() && !c.to.waits && c.r.URL.RawQuery != "" {
		return messages.Malformed.Because("there is no query here")
	}
	if err := c.readBody(); err != nil {
		return err
	}
	ctx, cancel := f.within(c.r.Context())
	defer cancel()
	if c.to.queued {
		if err := c.takeTurn(ctx); err != nil {
			return err
		}
		defer c.yield()
	}
	err := c.to.serve(ctx, c)
	if c.to.proves && isFailedProof(err) {
		return f.failed(f.proofFailures, c, err)
	}
	return err
}

// within is a request's context, which also ends with the face.
func (f *Face) within(request context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(request)
	stop := context.AfterFunc(f.ended, func() { cancel(context.Cause(f.ended)) })
	return ctx, func() { stop(); cancel(nil) }
}

// holdsCapability compares in constant time. A second Authorization header is as
// wrong as none.
func (f *Face) holdsCapability(r *http.Request) bool {
	given := r.Header["Authorization"]
	return len(given) == 1 && identity.CheckCapability(f.capability, bearerIn(given[0]))
}

// failed counts a failure of the peer, and says so instead of why once there were
// too many. The credential has been checked by then: a valid one never comes here.
func (f *Face) failed(budget *failures, c *call, err error) error {
	if wait := budget.count(c.r.RemoteAddr); wait > 0 {
		return &throttled{wait: wait, cause: err}
	}
	return err
}

func isFailedProof(err error) bool {
	switch messages.Describe(err).Code {
	case messages.Unauthenticated, messages.Expired, messages.PermissionDenied:
		return true
	}
	return false
}
