package supervisor

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// An Option changes how a tree works.
type Option func(*settings)

type settings struct {
	logger  *slog.Logger
	clock   Clock
	random  func() float64
	restart RestartConfig

	middleware func(path string) []actor.ReceiverMiddleware
}

func defaults() settings {
	return settings{
		logger:  slog.New(slog.DiscardHandler),
		clock:   systemClock{},
		random:  rand.Float64,
		restart: DefaultRestart(),
	}
}

// RestartConfig sets how restarts are spaced and when they are given up.
type RestartConfig struct {
	// First is the delay of the first restart after a child has been well.
	First time.Duration
	// Base is the largest delay of the second restart; it doubles with each further
	// one. The real delay is drawn evenly between zero and that (full jitter).
	Base time.Duration
	// Cap bounds the doubling.
	Cap time.Duration
	// ResetAfter is how long a child must have been open for the next restart to
	// count as the first again.
	ResetAfter time.Duration
	// Limit deaths of one child within Window make its group fail. Outages do not
	// count.
	Limit  int
	Window time.Duration
}

// DefaultRestart restarts at once, then from 50 ms doubling to 2 s, and gives up
// at 20 deaths in 30 s.
func DefaultRestart() RestartConfig {
	return RestartConfig{
		First:      0,
		Base:       50 * time.Millisecond,
		Cap:        2 * time.Second,
		ResetAfter: 5 * time.Second,
		Limit:      20,
		Window:     30 * time.Second,
	}
}

// WithLogger sets where the tree logs deaths, fences, children that do not end, and, as
// details, the resources that are held and that have ended. Message contents are never logged. Without it nothing is.
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) {
		if l != nil {
			s.logger = l
		}
	}
}

// WithClock sets the source of time.
func WithClock(c Clock) Option { return func(s *settings) { s.clock = c } }

// WithRandom sets the source of jitter: evenly distributed in [0, 1). It is called
// from several goroutines.
func WithRandom(f func() float64) Option { return func(s *settings) { s.random = f } }

// WithMiddleware puts the library's receiver middleware before the Receive of every
// leaf, the first of the list outermost; of is asked once for each life, with the path
// of its leaf, and may return none. It sees every message: the leaf's own, *Open, *Drain
// and *Close, and the library's Started, Stopping and Stopped. What it panics with is
// the leaf's death. What it does not hand on was received and is not answered: who
// asked waits until the deadline. What it hands on changed arrives changed; who gets the
// answer cannot be changed. It runs inside the actor and holds it up while it runs.
func WithMiddleware(of func(path string) []actor.ReceiverMiddleware) Option {
	return func(s *settings) { s.middleware = of }
}

// WithRestart replaces DefaultRestart.
func WithRestart(c RestartConfig) Option { return func(s *settings) { s.restart = c } }
