package broker

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// sockets opens the sockets of one connection, one after another as it
// reconnects, and knows which are still open. Once cut it opens no more.
type sockets struct {
	open    func(ctx context.Context, network, address string) (net.Conn, error)
	timeout time.Duration
	// freed is called after a socket has closed.
	freed func()

	mu sync.Mutex
	// bound is the context of the dial until the connection stands; later sockets
	// are bounded by the timeout alone.
	bound context.Context
	live  map[*socket]struct{}
	isCut bool
}

// Dial opens a socket for the NATS client.
func (s *sockets) Dial(network, address string) (net.Conn, error) {
	s.mu.Lock()
	ctx, cancel := context.WithTimeout(s.bound, s.timeout)
	s.mu.Unlock()
	defer cancel()
	raw, err := s.open(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isCut {
		_ = raw.Close()
		return nil, nats.ErrConnectionClosed
	}
	sock := &socket{Conn: raw, of: s}
	s.live[sock] = struct{}{}
	return sock, nil
}

// setBound changes what bounds the sockets opened from now on.
func (s *sockets) setBound(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bound = ctx
}

// cut drops every socket without a farewell and lets no new one open.
func (s *sockets) cut() {
	s.mu.Lock()
	s.isCut = true
	live := make([]*socket, 0, len(s.live))
	for sock := range s.live {
		live = append(live, sock)
	}
	s.mu.Unlock()
	for _, sock := range live {
		if tcp, ok := sock.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // reset: what is still buffered is dropped, as when a cable is cut
		}
		_ = sock.Close()
	}
}

// severed reports whether cut was called.
func (s *sockets) severed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isCut
}

// none reports whether no socket is open.
func (s *sockets) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live) == 0
}

// socket tells its owner when it has closed.
type socket struct {
	net.Conn
	of   *sockets
	once sync.Once
}

func (s *socket) Close() error {
	err := s.Conn.Close()
	s.once.Do(func() {
		s.of.mu.Lock()
		delete(s.of.live, s)
		s.of.mu.Unlock()
		s.of.freed()
	})
	return err
}
