package exchange

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Nothing answers before the face does, whatever is asked.
func TestTheFaceAnswersWhatIsAskedOfTheServerAsAWhole(t *testing.T) {
	s := start(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.address.URL(), "http://"))
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = conn.Write([]byte("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"))
	must(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound || answer.Header.Get("X-Request-Id") == "" {
		t.Errorf("got %s with %v", answer.Status, answer.Header)
	}
}

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
