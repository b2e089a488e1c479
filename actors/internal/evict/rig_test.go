package evict_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/actors/internal/natsd"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

const (
	uidA = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	uidB = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
	uidC = "cccccccccccccccccccccccccc"
)

// longEnough bounds the wait for something that must happen.
const longEnough = time.Minute

// authTimeout is how long the servers of the tests let a client be connecting.
const authTimeout = 2 * time.Second

// principal is the n-th of a test.
func principal(n int) messages.Principal {
	return messages.Principal{Owner: "u_" + strings.Repeat("x", 26), Actor: fmt.Sprintf("Laptop_%d", n)}
}

func target(n int) messages.Target { return messages.Target{Principal: principal(n), UID: uidA} }

// token is what the door of a test takes for the n-th principal's.
func token(n int, uid string) string { return principal(n).String() + "/" + uid }

// stage is a chain with whatever servers run on it.
type stage struct {
	testing.TB
	dir, url string
	m        *trust.Material
}

func single(t *testing.T) *stage {
	t.Helper()
	space := natsdtest.NewSpace(t, "acme")
	return &stage{TB: t, dir: space.Dir, url: space.URL(), m: space.Material}
}

// everyDoor is a stage with one server that is reached plainly, by TLS and by
// WebSocket.
func everyDoor(t *testing.T) (s *stage, roots *x509.CertPool, websocket string) {
	t.Helper()
	dir := natsdtest.Chain(t, "acme")
	web := httptest.NewTLSServer(nil) // comes with a certificate for 127.0.0.1
	defer web.Close()
	key, err := x509.MarshalPKCS8PrivateKey(web.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	conf, err := os.ReadFile(trust.ServerConf(dir))
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("tls { cert_file: %q, key_file: %q }\nallow_non_tls: true\nwebsocket { listen: \"127.0.0.1:-1\", no_tls: true }\n",
		file("cert.pem", "CERTIFICATE", web.Certificate().Raw), file("key.pem", "PRIVATE KEY", key))
	if err := os.WriteFile(trust.ServerConf(dir), append(conf, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(web.Certificate())
	server := natsdtest.Start(t, natsd.Config{Dir: dir})
	url := "nats://" + strings.TrimPrefix(server.Address(), "nats://")
	return &stage{TB: t, dir: dir, url: url, m: natsdtest.Load(t, dir, "acme")}, roots, server.Native().WebsocketURL()
}

// cluster is a stage with three servers, n1 to n3.
func cluster(t testing.TB) (*stage, *natsd.Group) {
	t.Helper()
	dir := natsdtest.Chain(t, "acme")
	group := natsdtest.Cluster(t, dir, 3)
	s := &stage{TB: t, dir: dir, url: group.Server(0).URL(), m: natsdtest.Load(t, dir, "acme")}
	s.allAnswer()
	return s, group
}

// allAnswer waits until every server of three does.
func (s *stage) allAnswer() {
	s.Helper()
	o := sweep.NewObserver(s.conn(broker.Observer()), 0)
	natsdtest.Eventually(s, "all three answer", func() error {
		if r, err := o.Roster(s.Context(), []string{"n1", "n2", "n3"}); err != nil || len(r.Doubts) > 0 || len(r.Servers) != 3 {
			return fmt.Errorf("%+v, %w", r, err)
		}
		return nil
	})
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// conn opens a connection of ours in a role.
func (s *stage) conn(role broker.Role) *nats.Conn { return s.connAt(s.url, role) }

func (s *stage) connAt(url string, role broker.Role) *nats.Conn {
	s.Helper()
	d, err := broker.NewDialer(broker.Config{URL: url, Space: "acme", Material: s.m, Logger: slog.New(slog.DiscardHandler)})
	s.must(err)
	var kept *broker.Conn
	c, err := d.Dial(s.Context(), role, func(c *broker.Conn) error { kept = c; return nil })
	s.must(err)
	s.Cleanup(func() { kept.Sever(); <-kept.Ended() })
	return c.NATS()
}

// dial connects as a client of a principal does, and does not come back.
func (s *stage) dial(url, token string, opts ...nats.Option) (*nats.Conn, error) {
	ended := make(chan struct{})
	nc, err := nats.Connect(url, append([]nats.Option{nats.UserCredentials(trust.SentinelCreds(s.dir)), nats.Token(token), nats.NoReconnect(),
		nats.Timeout(longEnough), nats.ClosedHandler(func(*nats.Conn) { close(ended) })}, opts...)...)
	if err == nil {
		s.Cleanup(func() { nc.Close(); <-ended })
	}
	return nc, err
}

func (s *stage) client(token string, opts ...nats.Option) *nats.Conn {
	s.Helper()
	nc, err := s.dial(s.url, token, opts...)
	s.must(err)
	return nc
}

func (s *stage) ref(nc *nats.Conn) messages.ConnectionRef {
	s.Helper()
	cid, err := nc.GetClientID()
	s.must(err)
	return messages.ConnectionRef{ServerID: nc.ConnectedServerId(), ClientID: cid}
}

// listed are the connections of a target that the servers list, past every port.
func (s *stage) listed(targets ...messages.Target) []messages.LiveConnection {
	s.Helper()
	o := sweep.NewObserver(s.conn(broker.Observer()), 0)
	roster, err := o.Roster(s.Context(), nil)
	s.must(err)
	swept, err := o.Connections(s.Context(), s.m.Account(trust.DATA), roster, targets)
	s.must(err)
	return swept.Connections
}

// dropped waits until the server has closed a client's connection.
func (s *stage) dropped(nc *nats.Conn) {
	s.Helper()
	natsdtest.Eventually(s, "the client is dropped", func() error {
		if !nc.IsClosed() {
			return fmt.Errorf("it is %v", nc.Status())
		}
		return nil
	})
}

// servers asks real servers, and counts.
type servers struct {
	s        *stage
	observer *sweep.Observer
	evictor  *nats.Conn

	observed, swept, settling, kicks atomic.Int64

	// The rest lets a test come between; all may be nil. n counts the sweeps of DATA
	// from 1.
	beforeSweep func(n int)
	afterSweep  func(n int, swept *messages.Swept)
	beforeKick  func([]messages.ConnectionRef)
	afterKick   func([]messages.ConnectionRef)
}

func (s *stage) servers() *servers {
	s.Helper()
	return &servers{s: s, observer: sweep.NewObserver(s.conn(broker.Observer()), 0), evictor: s.conn(broker.Evictor())}
}

func (v *servers) Observe(ctx context.Context, known []string) (messages.Roster, error) {
	v.observed.Add(1)
	return v.observer.Roster(ctx, known)
}

func (v *servers) Sweep(ctx context.Context, m messages.SweepConnections) (messages.Swept, error) {
	n := 0
	if m.Account == string(trust.DATA) {
		n = int(v.swept.Add(1))
	} else {
		v.settling.Add(1)
	}
	if n > 0 && v.beforeSweep != nil {
		v.beforeSweep(n)
	}
	roster, err := v.observer.Roster(ctx, m.Known)
	if err != nil {
		return messages.Swept{}, err
	}
	swept, err := v.observer.Connections(ctx, v.s.m.Account(trust.Account(m.Account)), roster, m.Targets)
	if n > 0 && v.afterSweep != nil {
		v.afterSweep(n, &swept)
	}
	return swept, err
}

func (v *servers) Kick(ctx context.Context, connections []messages.ConnectionRef) ([]messages.KickResult, error) {
	v.kicks.Add(1)
	if v.beforeKick != nil {
		v.beforeKick(connections)
	}
	results, err := sweep.Kick(ctx, v.evictor, connections)
	if v.afterKick != nil {
		v.afterKick(connections)
	}
	return results, err
}

// proof is an eviction that a test runs.
type proof struct {
	out  evict.Outcome
	err  error
	took time.Duration
	told []evict.Progress
}

// evict runs an eviction, frozen now.
func (s *stage) evict(ports evict.Ports, ask evict.Ask) proof {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), longEnough)
	defer cancel()
	var p proof
	ask.Operation = "op"
	for _, key := range s.m.Callouts {
		ask.Callouts = append(ask.Callouts, key.Public)
	}
	began := time.Now()
	p.out, p.err = evict.Run(ctx, ports, ask, func(told evict.Progress) { p.told = append(p.told, told) })
	p.took = time.Since(began)
	return p
}

// gone is an eviction that must succeed; nobody of the targets is listed after it.
func (s *stage) gone(ports evict.Ports, ask evict.Ask) proof {
	s.Helper()
	p := s.evict(ports, ask)
	if p.err != nil {
		s.Fatalf("not proved: %v", p.err)
	}
	if left := s.listed(ask.Targets...); len(left) > 0 {
		s.Fatalf("proved gone, and there: %+v", left)
	}
	return p
}

// crowd runs do n times, a few at once: with many, a slow server pings clients that
// are still connecting, which these do not bear.
func crowd(n int, do func(int)) {
	var workers sync.WaitGroup
	next := make(chan int) // hands out one at a time
	for range 4 {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}

func says(list []string, part string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, part) })
}

func sentinel(s *stage) string { return trust.SentinelCreds(s.dir) }
