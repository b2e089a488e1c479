package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/cotal-ai/authplane/actors/internal/trust"
)

// Config says which server to start.
type Config struct {
	// Dir is the directory of the trust chain, whose nats-server.conf is used.
	Dir string
	// Listen is host:port to listen on instead of what the configuration says; port
	// 0 means any free one.
	Listen string
	// StoreDir is where streams are kept instead of where the configuration says.
	StoreDir string
	// Name is the server's name instead of the configured one.
	Name string
	// Logger hears what the server says; nil for nobody.
	Logger *slog.Logger

	routes *routing
}

// routing makes a server a member of a cluster.
type routing struct {
	cluster string
	port    int
	peers   []*url.URL
}

// Server is one running server.
type Server struct {
	native *server.Server
	log    *logger
	// stop is closed when it shall shut down, done when it has, for whatever reason,
	// and nothing of it runs any more (both capacity 0: they carry no value).
	stop, done chan struct{}
	stopOnce   sync.Once
}

// readiness is how long one look at the server's readiness takes at most.
const readiness = 20 * time.Millisecond

// Start starts a server and returns once it accepts connections. The context
// bounds the start alone; when it fails, nothing is left running.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	opts, err := options(cfg)
	if err != nil {
		return nil, fmt.Errorf("nats-server of %s: %w", cfg.Dir, err)
	}
	native, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("nats-server of %s: %w", cfg.Dir, err)
	}
	s := &Server{native: native, log: newLogger(cfg.Logger), stop: make(chan struct{}), done: make(chan struct{})}
	native.SetLogger(s.log, false, false)
	go s.run() // waited for through done
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("nats-server of %s: %w", cfg.Dir, err), s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// run is the server's life: it starts, and shuts down when told to or by itself.
func (s *Server) run() {
	defer close(s.done)
	gone := make(chan struct{}) // capacity 0: closed, never sent to
	var stopper sync.WaitGroup
	stopper.Go(func() {
		select {
		case <-s.stop:
			s.native.Shutdown()
		case <-gone:
		}
	})
	s.native.Start()
	s.native.WaitForShutdown()
	close(gone)
	stopper.Wait()
}

func options(cfg Config) (*server.Options, error) {
	opts, err := server.ProcessConfigFile(trust.ServerConf(cfg.Dir))
	if err != nil {
		return nil, err
	}
	opts.NoSigs = true
	opts.NoLog = true // the logger is set by hand
	if cfg.Listen != "" {
		if opts.Host, opts.Port, err = hostPort(cfg.Listen); err != nil {
			return nil, err
		}
	}
	if cfg.StoreDir != "" {
		opts.StoreDir = cfg.StoreDir
	}
	if cfg.Name != "" {
		opts.ServerName = cfg.Name
	}
	if cfg.routes != nil {
		opts.Cluster.Name = cfg.routes.cluster
		opts.Cluster.Host = "127.0.0.1"
		opts.Cluster.Port = cfg.routes.port
		opts.Routes = cfg.routes.peers
	}
	return opts, nil
}

func hostPort(address string) (string, int, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("the port of %s is not a number", address)
	}
	if port == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(port), nil
}

// awaitReady looks until the server accepts connections, has given up or the
// context ends; the server has no event for it.
func (s *Server) awaitReady(ctx context.Context) error {
	for !s.native.ReadyForConnections(readiness) {
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), s.log.fatal())
		case <-s.done:
			return errors.Join(errors.New("it shut down while starting"), s.log.fatal())
		default:
		}
		if err := s.log.fatal(); err != nil {
			return err
		}
	}
	return s.log.fatal()
}

// Address is host:port where it listens.
func (s *Server) Address() string {
	if addr := s.native.Addr(); addr != nil {
		return addr.String()
	}
	return ""
}

// URL is where clients reach it.
func (s *Server) URL() string { return s.native.ClientURL() }

// ID is the server's public key of this run.
func (s *Server) ID() string { return s.native.ID() }

// Name is the server's name, which outlives its runs.
func (s *Server) Name() string { return s.native.Name() }

// Native is the server itself, for tests that look inside.
func (s *Server) Native() *server.Server { return s.native }

// Done is closed when the server has shut down, by Stop or by itself, and nothing
// of it runs any more.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says why the server gave up, if it did.
func (s *Server) Err() error { return s.log.fatal() }

// Sever has the server shut down, dropping its clients, and does not wait.
func (s *Server) Sever() { s.stopOnce.Do(func() { close(s.stop) }) }

// Stop shuts the server down, drops its clients and waits until it is gone.
// Stopping again is allowed.
func (s *Server) Stop(ctx context.Context) error {
	s.Sever()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("nats-server %s is still running: %w", s.Name(), ctx.Err())
	}
}
