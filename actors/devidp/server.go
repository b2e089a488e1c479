package devidp

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// DefaultAddress lets the system choose a port on the loopback.
const DefaultAddress = "127.0.0.1:0"

// Config says how a development provider stands.
type Config struct {
	// Address is where it listens: a loopback address in digits and a port. The
	// default is DefaultAddress. The issuer, and with it every owner, follows from
	// the port; name it where grants should survive a restart of the process.
	Address string
	// ClientID is the audience of every token: the client id of the space. Required.
	ClientID string
	// Key is a key of NewKey; by default one is made, for EdDSA, that ends with the Server.
	Key messages.Secret
	// TokenLife is the life of an ID token; the default is one hour.
	TokenLife time.Duration
	// Now is the clock of logins; the default is time.Now. Tokens are dated by the
	// system's clock.
	Now func() time.Time
}

// Server is what outlives a restart: the key, the client, and the address once it
// has one. It serves nothing itself; Start makes it.
type Server struct {
	client client
	key    signer
	now    func() time.Time

	mu      sync.Mutex
	address string
	bound   bool
	last    *Run
}

// New checks a configuration and makes the key. It binds nothing.
func New(config Config) (*Server, error) {
	if config.Address == "" {
		config.Address = DefaultAddress
	}
	address, err := netip.ParseAddrPort(config.Address)
	if err != nil || !address.Addr().IsLoopback() {
		return nil, messages.Malformed.Because("the development provider listens on a loopback address in digits, with a port")
	}
	if config.ClientID == "" {
		return nil, messages.Malformed.Because("the development provider needs a client id")
	}
	if config.Key.IsZero() {
		if config.Key, err = NewKey("EdDSA"); err != nil {
			return nil, err
		}
	}
	key, err := openKey(config.Key)
	if err != nil {
		return nil, messages.Malformed.From(err)
	}
	if config.TokenLife == 0 {
		config.TokenLife = time.Hour
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Server{client: client{id: config.ClientID, life: config.TokenLife}, key: key, now: config.Now, address: address.String()}, nil
}

// Start binds the address, the same one as last time, and serves. A former run
// that has not ended is cut, and waited for, first.
func (s *Server) Start(ctx context.Context) (*Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil {
		s.last.Sever()
		<-s.last.Ended()
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return nil, fmt.Errorf("bind the development identity provider: %w", err)
	}
	s.address, s.bound = listener.Addr().String(), true
	run, err := newRun(s, listener, "http://"+s.address)
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("make the development identity provider: %w", err)
	}
	s.last = run
	return run, nil
}

// Issuer is the issuer of every token, and the base of every URL. It is empty
// before the first Start.
func (s *Server) Issuer() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.bound {
		return ""
	}
	return "http://" + s.address
}

// Address is where it listens, or, before the first Start, where it will try to.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// codeKey encrypts authorization codes; it follows from the signing key, so that
// nothing else has to be kept.
func (s *Server) codeKey() [32]byte {
	private, _ := s.key.jwk.MarshalJSON() // was read from JSON
	return sha256.Sum256(append([]byte("authorization codes:"), private...))
}
