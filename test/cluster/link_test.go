package cluster

import (
	"net"
	"sync"
)

// link is the way from one server to another. It can be cut, and mended.
type link struct {
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	target string // empty: nobody is there yet
	cut    bool
	open   map[net.Conn]bool
}

func startLink() (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, open: map[net.Conn]bool{}}
	l.running.Go(l.accept)
	return l, nil
}

func (l *link) address() string { return l.listener.Addr().String() }

// leadTo says where the link ends.
func (l *link) leadTo(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = address
}

// set cuts the link, or mends it. When it has returned from a cut, nothing passes.
func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		for conn := range l.open {
			_ = conn.Close()
		}
	}
}

func (l *link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.join(near)
	}
}

// join leads one connection on, unless the link leads nowhere.
func (l *link) join(near net.Conn) {
	l.mu.Lock()
	target := l.target
	l.mu.Unlock()
	far, err := net.Dial("tcp", target)
	if err != nil {
		_ = near.Close()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		_ = near.Close()
		_ = far.Close()
		return
	}
	l.open[near], l.open[far] = true, true
	l.running.Go(func() { l.forward(near, far) })
	l.running.Go(func() { l.forward(far, near) })
}

// forward copies until either end is closed.
func (l *link) forward(to, from net.Conn) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, from)
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (l *link) close() {
	_ = l.listener.Close()
	l.set(true)
	l.running.Wait()
}
