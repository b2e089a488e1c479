package broker_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
)

const (
	instance = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	another  = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
	// longEnough bounds the wait for something that must happen.
	longEnough = 20 * time.Second
	// silentFor is how long a question is followed that nobody may answer.
	silentFor = 500 * time.Millisecond
)

// dialer makes a dialer for a space; tune changes what a test is about.
func dialer(t *testing.T, s *natsdtest.Space, tune ...func(*broker.Config)) *broker.Dialer {
	t.Helper()
	cfg := broker.Config{URL: s.URL(), Space: s.Name, Material: s.Material, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range tune {
		f(&cfg)
	}
	d, err := broker.NewDialer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// custody keeps what it is given and closes it when the test ends.
type custody struct {
	mu   sync.Mutex
	kept []*broker.Conn
}

func newCustody(t *testing.T) *custody {
	c := &custody{}
	t.Cleanup(func() {
		for _, conn := range c.all() {
			conn.Sever()
			await(t, conn.Ended(), "a connection in custody ends")
		}
	})
	return c
}

func (c *custody) keep(conn *broker.Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, conn)
	return nil
}

func (c *custody) all() []*broker.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*broker.Conn(nil), c.kept...)
}

// dial opens a connection until the test ends.
func dial(t *testing.T, d *broker.Dialer, role broker.Role) *broker.Conn {
	t.Helper()
	c, err := d.Dial(t.Context(), role, newCustody(t).keep)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func await(t *testing.T, event <-chan struct{}, what string) {
	t.Helper()
	limit := time.NewTimer(longEnough)
	defer limit.Stop()
	select {
	case <-event:
	case <-limit.C:
		t.Fatalf("never: %s", what)
	}
}

func happened(event <-chan struct{}) bool {
	select {
	case <-event:
		return true
	default:
		return false
	}
}

// authorityStream makes the authority stream in the shape the service gives it.
func authorityStream(t *testing.T, s *natsdtest.Space) jetstream.Stream {
	t.Helper()
	js, err := jetstream.New(natsdtest.Connect(t, s.URL(), s.Material, trust.CTRL, natsdtest.Everything()))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), authorityConfig(s.Name))
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func authorityConfig(space string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:               broker.AuthorityStream(space),
		Subjects:           []string{"$KV." + broker.AuthorityBucket(space) + ".>"},
		Storage:            jetstream.FileStorage,
		Retention:          jetstream.LimitsPolicy,
		MaxMsgsPerSubject:  1,
		Discard:            jetstream.DiscardNew,
		DenyDelete:         true,
		DenyPurge:          true,
		AllowAtomicPublish: true,
		MaxMsgs:            -1, MaxBytes: -1, MaxMsgSize: -1, MaxConsumers: -1,
		Replicas: 1,
		RePublish: &jetstream.RePublish{
			Source:      "$KV." + broker.AuthorityBucket(space) + ".>",
			Destination: broker.ChangedSubject(space),
			HeadersOnly: true,
		},
	}
}

// mayPublish reports whether the server lets the connection publish to subject.
func mayPublish(t *testing.T, nc *nats.Conn, subject string) bool {
	t.Helper()
	if err := nc.Publish(subject, nil); err != nil {
		t.Fatalf("publish %s: %v", subject, err)
	}
	return !violated(t, nc, `Publish to "`+subject+`"`)
}

// maySubscribe reports whether the server lets it subscribe; subject may carry a
// queue group behind a space.
func maySubscribe(t *testing.T, nc *nats.Conn, subject string) bool {
	t.Helper()
	plain, queue, _ := strings.Cut(subject, " ")
	sub, err := nc.QueueSubscribeSync(plain, queue)
	if err != nil {
		t.Fatalf("subscribe %s: %v", subject, err)
	}
	said := `Subscription to "` + plain + `"`
	if queue != "" {
		said += ` using queue "` + queue + `"`
	}
	allowed := !violated(t, nc, said)
	_ = sub.Unsubscribe() // the server has forgotten a refused one already
	return allowed
}

// violated asks whether the last complaint of the server is the given one. The
// complaint comes before the answer to the flush.
func violated(t *testing.T, nc *nats.Conn, what string) bool {
	t.Helper()
	if err := nc.FlushTimeout(longEnough); err != nil {
		t.Fatalf("flush: %v", err)
	}
	err := nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.HasSuffix(err.Error(), what)
}

// wire opens sockets that a test can stall or cut.
type wire struct {
	mu      sync.Mutex
	stalled chan struct{}
	live    []net.Conn
}

func newWire() *wire { return &wire{stalled: make(chan struct{})} }

func (w *wire) open(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if happened(w.stalled) {
		<-ctx.Done() // nobody answers
		return nil, ctx.Err()
	}
	raw, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.live = append(w.live, raw)
	return &stallable{Conn: raw, stalled: w.stalled}, nil
}

// stall lets nothing through any more, in either direction, while every socket
// stays open: what a vanished peer looks like.
func (w *wire) stall() { close(w.stalled) }

// cut closes every socket; new ones may be opened.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.live {
		_ = c.Close()
	}
	w.live = nil
}

type stallable struct {
	net.Conn
	stalled chan struct{}
}

func (s *stallable) Write(b []byte) (int, error) {
	if happened(s.stalled) {
		return len(b), nil
	}
	return s.Conn.Write(b)
}

func (s *stallable) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if err == nil && happened(s.stalled) {
		_, err = io.Copy(io.Discard, s.Conn) // until it is closed
		if err == nil {
			err = io.EOF
		}
		return 0, err
	}
	return n, err
}
