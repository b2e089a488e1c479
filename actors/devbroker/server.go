package devbroker

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/natsd"
	"github.com/cotal-ai/authplane/messages"
)

// DefaultAddress lets the system choose a port on the loopback.
const DefaultAddress = "127.0.0.1:0"

// label names the server in inventories.
const label = "cotal:dev-broker"

// Config says which broker to keep.
type Config struct {
	// Dir is the directory of the trust chain; the streams are kept there also.
	Dir string
	// Address is host:port to listen on; the default is DefaultAddress.
	Address string
	// Logger hears what the server says; nil for nobody.
	Logger *slog.Logger
}

// Server is what outlives a restart: the chain, the streams on disk, and the
// address once it has one. It runs nothing itself; Start does.
type Server struct {
	config Config

	mu      sync.Mutex
	address string
	url     string
	last    *Run
}

// New checks a configuration. It starts nothing and does not look at the chain.
func New(config Config) (*Server, error) {
	if config.Dir == "" {
		return nil, messages.Malformed.Because("the development broker needs the directory of a trust chain")
	}
	if config.Address == "" {
		config.Address = DefaultAddress
	}
	if _, _, err := net.SplitHostPort(config.Address); err != nil {
		return nil, messages.Malformed.Because("the development broker listens on <host>:<port>")
	}
	return &Server{config: config, address: config.Address}, nil
}

// Start runs the server, at the same address as last time, and returns once it
// accepts connections. A former run that has not ended is ended, and waited for,
// first.
func (s *Server) Start(ctx context.Context) (*Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil {
		if err := s.last.Stop(ctx); err != nil {
			return nil, err
		}
	}
	native, err := natsd.Start(ctx, natsd.Config{Dir: s.config.Dir, Listen: s.address, Logger: s.config.Logger})
	if err != nil {
		return nil, fmt.Errorf("start the development broker: %w", err)
	}
	s.address, s.url, s.last = native.Address(), native.URL(), &Run{native: native}
	return s.last, nil
}

// URL is where clients reach it. It is empty before the first Start.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// Address is where it listens, or, before the first Start, where it will try to.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// Run is one time that the server runs, from Start to Ended.
type Run struct{ native *natsd.Server }

// Label names the run in inventories.
func (r *Run) Label() string { return label }

// Sever has the server drop everybody and end. It does not wait.
func (r *Run) Sever() { r.native.Sever() }

// Ended is closed when nothing of the run is left.
func (r *Run) Ended() <-chan struct{} { return r.native.Done() }

// Err says why a run ended that nobody ended, as far as the server told.
func (r *Run) Err() error { return r.native.Err() }

// Stop ends the server and waits until nothing of it is left.
func (r *Run) Stop(ctx context.Context) error { return r.native.Stop(ctx) }
