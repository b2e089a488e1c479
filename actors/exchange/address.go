package exchange

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// Address is where a face listens. It outlives the actor's lives: once a port was
// chosen, every later life binds that port again, since clients have been told it.
// It is safe for concurrent use.
type Address struct {
	mu     sync.Mutex
	listen string
	bound  netip.AddrPort
	scheme string
}

// NewAddress is an address, host:port. Port 0 lets the first life choose a free
// one; empty is that on 127.0.0.1.
func NewAddress(listen string) *Address {
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	return &Address{listen: listen}
}

// URL is how the address is reached from this machine, without a trailing slash;
// empty before it was bound for the first time.
func (a *Address) URL() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.bound.IsValid() {
		return ""
	}
	return a.scheme + "://" + reachable(a.bound).String()
}

// reachable stands in for an address that means all of this machine's.
func reachable(at netip.AddrPort) netip.AddrPort {
	switch at.Addr() {
	case netip.IPv4Unspecified():
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	case netip.IPv6Unspecified():
		return netip.AddrPortFrom(netip.IPv6Loopback(), at.Port())
	}
	return at
}

// bind listens, at the address that was bound before if there was one.
func (a *Address) bind(ctx context.Context, scheme string) (net.Listener, error) {
	a.mu.Lock()
	listen := a.listen
	a.mu.Unlock()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", listen, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listen, a.scheme = listener.Addr().String(), scheme
	a.bound = listener.Addr().(*net.TCPAddr).AddrPort()
	return listener, nil
}
