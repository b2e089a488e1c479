package exchange

import (
	"net"
	"net/http"
	"testing"
)

// closing is a connection that remembers whether it was closed.
type closing struct {
	net.Conn
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestConnectionsAreBounded(t *testing.T) {
	s := &server{}
	open := func() *closing {
		conn := &closing{}
		s.follow(conn, http.StateNew)
		return conn
	}
	for i := range maxConnections {
		if open().closed {
			t.Fatalf("connection %d was closed", i+1)
		}
	}
	surplus := open()
	if !surplus.closed {
		t.Fatal("one too many was kept")
	}
	s.follow(surplus, http.StateClosed)
	s.follow(&closing{}, http.StateClosed) // one of those before
	if open().closed {
		t.Fatal("the place of one that ended was not given on")
	}
}
