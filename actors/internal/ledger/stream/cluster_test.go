package stream_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/cotal-ai/authplane/actors/internal/ledger/contract"
)

// cluster is three servers, each pair joined by links that can be cut.
type cluster struct {
	servers []*server.Server
	links   map[[2]int]*link // from one to another, by their numbers
}

// startCluster runs three servers. Each dials the others through links, and
// advertises an address where nobody is, so that no route goes around them.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{links: map[[2]int]*link{}}
	for from := range 3 {
		for to := range 3 {
			if from != to {
				c.links[[2]int{from, to}] = startLink(t)
			}
		}
	}
	for n := range 3 {
		opts := &server.Options{ServerName: fmt.Sprintf("n%d", n), StoreDir: t.TempDir(), Port: server.RANDOM_PORT}
		opts.Cluster = server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: server.RANDOM_PORT,
			Advertise: fmt.Sprintf("127.0.0.1:%d", n+1), NoAdvertise: true, PoolSize: -1}
		for to := range 3 {
			if to != n {
				opts.Routes = append(opts.Routes, c.links[[2]int{n, to}].url())
			}
		}
		c.servers = append(c.servers, startUnready(t, opts))
	}
	for n, s := range c.servers {
		if !s.ReadyForConnections(patience) {
			t.Fatal("the cluster does not come up")
		}
		for from := range 3 {
			if from != n {
				c.links[[2]int{from, n}].leadTo(s.ClusterAddr().String())
			}
		}
	}
	return c
}

// cut lets nothing pass any more between one server and the others. Connections
// stay up, as when packets vanish.
func (c *cluster) cut(n int) {
	for pair, l := range c.links {
		if pair[0] == n || pair[1] == n {
			l.silent.Store(true)
		}
	}
}

// mend lets a server that was cut off reach the others again, by new connections: what
// was swallowed would have torn the old ones.
func (c *cluster) mend(n int) {
	for pair, l := range c.links {
		if pair[0] == n || pair[1] == n {
			l.silent.Store(false)
			l.mu.Lock()
			for _, conn := range l.open {
				_ = conn.Close()
			}
			l.open = nil
			l.mu.Unlock()
		}
	}
}

// leader is the number of the server that leads the stream, or -1.
func (c *cluster) leader(stream string) int {
	for n, s := range c.servers {
		if s.JetStreamIsStreamLeader("$G", stream) {
			return n
		}
	}
	return -1
}

// link forwards to one address until it is silenced.
type link struct {
	listener net.Listener
	target   atomic.Pointer[string]
	silent   atomic.Bool
	mu       sync.Mutex
	open     []net.Conn
	running  sync.WaitGroup
}

func startLink(t *testing.T) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener}
	l.running.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

// leadTo says where the link ends; until then it turns everybody away.
func (l *link) leadTo(address string) { l.target.Store(&address) }

func (l *link) url() *url.URL {
	return &url.URL{Scheme: "nats-route", Host: l.listener.Addr().String()}
}

func (l *link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		target := l.target.Load()
		if target == nil {
			_ = near.Close()
			continue
		}
		far, err := net.Dial("tcp", *target)
		if err != nil {
			_ = near.Close()
			continue
		}
		l.mu.Lock()
		l.open = append(l.open, near, far)
		l.mu.Unlock()
		l.running.Go(func() { l.forward(near, far) })
		l.running.Go(func() { l.forward(far, near) })
	}
}

// forward copies until either end is closed, and swallows while silent.
func (l *link) forward(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if l.silent.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil && err != io.EOF {
			return
		}
	}
}

func (l *link) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	for _, conn := range l.open {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.running.Wait()
}

func TestOnThreeReplicas(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	make := subjects(dial(t, c.servers[1].ClientURL()), 3)
	t.Run("contract", func(t *testing.T) { contract.Backend(t, make) })
	t.Run("transitions", func(t *testing.T) { contract.Transitions(t, 50, make) })
	t.Run("barriers", func(t *testing.T) { contract.Barriers(t, make) })
	t.Run("issues", func(t *testing.T) { contract.Issues(t, make) })
	t.Run("cuts", func(t *testing.T) {
		contract.Cuts(t, make, "takeover", "retirement", "handle revocation", "session redemption")
	})
}
