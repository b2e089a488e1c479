package exchange

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/face"
	"github.com/cotal-ai/authplane/supervisor"
)

// Limits of one connection. Bodies have a time of their own, which the face sets;
// event streams set their own for writing.
const (
	headerWithin = 5 * time.Second
	answerWithin = 60 * time.Second
	idleWithin   = 60 * time.Second
	maxHeader    = 16 << 10

	// maxConnections is how many one face holds; one more is closed at once. It keeps
	// strangers from using up the files that the space's own connections need.
	maxConnections = 4096

	// giveUpWithin is how long the handlers of a server that ends may take to answer
	// that they gave up, and flushWithin how long those answers may take to leave.
	giveUpWithin = 250 * time.Millisecond
	flushWithin  = 100 * time.Millisecond
)

// server is one face on one address, for one life.
type server struct {
	face    *face.Face
	address *Address
	http    *http.Server
	log     *slog.Logger
	// connections waits for those whose goroutine has not ended; open counts them.
	connections sync.WaitGroup
	open        atomic.Int64

	mu       sync.Mutex
	listener net.Listener // nil before it is bound
	shut     bool         // accepts nothing any more

	stopOnce sync.Once
	stopped  chan struct{} // closed by stop
	gone     chan struct{} // closed when run has ended and nothing is left
}

func newServer(life *supervisor.Life, address *Address, secure *tls.Config, f *face.Face) *server {
	s := &server{face: f, address: address, log: life.Log(), stopped: make(chan struct{}), gone: make(chan struct{})}
	s.http = &http.Server{
		Handler: f, TLSConfig: secure.Clone(),
		DisableGeneralOptionsHandler: true, // the face answers whatever is asked
		ReadHeaderTimeout:            headerWithin, WriteTimeout: answerWithin, IdleTimeout: idleWithin, MaxHeaderBytes: maxHeader,
		ErrorLog:  slog.NewLogLogger(life.Log().Handler(), slog.LevelDebug),
		ConnState: s.follow,
	}
	return s
}

// follow keeps count of the connections, and closes those that are too many.
func (s *server) follow(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.connections.Add(1)
		if s.open.Add(1) > maxConnections {
			_ = conn.Close() // its goroutine finds it so, and ends
		}
	case http.StateClosed, http.StateHijacked:
		s.open.Add(-1)
		s.connections.Done()
	}
}

// run binds, tells so, and serves until ctx ends or stop is called. When it
// returns nothing of the server is left. An error is a listener that could not be
// had, or broke.
func (s *server) run(ctx context.Context, bound func()) error {
	defer close(s.gone)
	defer s.end()
	listener, err := s.address.bind(ctx, s.scheme())
	if err != nil {
		return err
	}
	if !s.take(listener) {
		return nil
	}
	bound()
	served := make(chan error, 1) // the goroutine below may end unheard only into this place
	go func() { served <- s.serve(listener) }()
	select {
	case err = <-served:
		if s.isShut() {
			s.untilStopped(ctx)
			return nil
		}
		return fmt.Errorf("accept: %w", err)
	case <-ctx.Done():
	case <-s.stopped:
	}
	s.shutDoor()
	<-served
	return nil
}

func (s *server) untilStopped(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.stopped:
	}
}

func (s *server) scheme() string {
	if s.http.TLSConfig != nil {
		return "https"
	}
	return "http"
}

func (s *server) serve(listener net.Listener) error {
	if s.http.TLSConfig != nil {
		return s.http.ServeTLS(listener, "", "")
	}
	return s.http.Serve(listener)
}

// take keeps the listener, or closes it if the server was shut before.
func (s *server) take(listener net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		_ = listener.Close() // nobody has used it
		return false
	}
	s.listener = listener
	return true
}

// shutDoor accepts no further connection. Those that stand are left alone.
func (s *server) shutDoor() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shut && s.listener != nil {
		_ = s.listener.Close() // what else it could say, Serve says
	}
	s.shut = true
}

func (s *server) isShut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shut
}

// stop makes run end.
func (s *server) stop() { s.stopOnce.Do(func() { close(s.stopped) }) }

// drain shuts the door and waits for what was accepted until ctx ends; then it
// cuts that off and waits for another grace.
func (s *server) drain(ctx context.Context, grace time.Duration) error {
	s.shutDoor()
	if s.face.Drain(ctx) == nil {
		return nil
	}
	s.log.Warn("cut off requests that took too long", "face", s.face.Name(), "requests", s.face.InFlight())
	cut, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := s.face.Close(cut); err != nil {
		return fmt.Errorf("%s face: %d requests: %w", s.face.Name(), s.face.InFlight(), supervisor.ErrStillRunning)
	}
	return nil
}

// end leaves nothing: handlers give up and say so, their answers leave, and what
// stands after that is cut.
func (s *server) end() {
	s.shutDoor()
	within(giveUpWithin, s.face.Close)
	within(flushWithin, s.http.Shutdown)
	_ = s.http.Close() // its listener is closed already, which is all it could complain of
	s.connections.Wait()
	_ = s.face.Close(context.Background()) // has no deadline to fail by
}

// within gives one step of the end its time; what it leaves over the next one ends.
func within(limit time.Duration, step func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = step(ctx)
}
