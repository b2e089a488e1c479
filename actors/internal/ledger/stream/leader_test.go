package stream_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
)

// write creates or replaces a row, whatever stands there and however long an
// election takes.
func write(t *testing.T, b ledger.Backend, key, value string) {
	t.Helper()
	patient := ledger.DefaultPatience()
	patient.Budget = patience
	store := ledger.NewStore(b, patient)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		row, _, err := store.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		row.Key = key
		_, err = store.Apply(ctx, ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, []byte(value))}, Witness: key})
		if err == nil {
			return
		}
		if !errors.Is(err, ledger.ErrLost) {
			t.Fatal(err)
		}
	}
}

// run runs a reader until the test ends, and returns a way to end it before.
func run(t testing.TB, r *stream.LeaderReader) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

func usable(t testing.TB, r *stream.LeaderReader) {
	t.Helper()
	eventually(t, "the reader is usable", r.State)
}

func TestLeaderReaderOnOneReplica(t *testing.T) {
	conn := dial(t, startServer(t).ClientURL())
	cfg := config("s", 1)
	met := open(t, conn, cfg)
	b := stream.New(conn, cfg, stream.NewLanes(stream.MaxLanes))
	write(t, b, "k", "v")
	r := stream.NewLeaderReader(conn, stream.ReaderConfig{Config: cfg, Remembered: met})
	if _, _, err := r.Get(t.Context(), "k"); !errors.Is(err, messages.Unproved) {
		t.Fatalf("before it runs: %v", err)
	}
	stop := run(t, r)
	usable(t, r)
	if row, found, err := r.Get(t.Context(), "k"); err != nil || !found || string(row.Value) != "v" {
		t.Fatalf("got %v, %v, %v", row, found, err)
	}
	if _, found, err := r.Get(t.Context(), "none"); err != nil || found {
		t.Fatalf("absent: %v, %v", found, err)
	}
	if keys, err := r.List(t.Context(), ">"); err != nil || len(keys) != 1 {
		t.Fatalf("got %v, %v", keys, err)
	}
	stop()
	if _, _, err := r.Get(t.Context(), "k"); !errors.Is(err, messages.Unproved) {
		t.Fatalf("after it ran: %v", err)
	}
}

func TestLeaderReaderNoticesDrift(t *testing.T) {
	conn := dial(t, startServer(t).ClientURL())
	a := admin{t, conn}
	cfg := config("s", 1)
	met := open(t, conn, cfg)
	changes := make(chan error, 10)
	r := stream.NewLeaderReader(conn, stream.ReaderConfig{Config: cfg, Remembered: met, ProveEvery: 50 * time.Millisecond,
		OnChange: func(err error) { changes <- err }})
	run(t, r)
	if err := <-changes; err != nil {
		t.Fatal(err)
	}
	good := a.config(cfg)
	altered := a.config(cfg)
	altered["max_age"] = time.Hour
	a.mustAPI("STREAM.UPDATE."+cfg.Name(), altered)
	if err := <-changes; !errors.Is(err, messages.StreamDrifted) || !errors.Is(err, messages.Unproved) {
		t.Fatalf("told %v", err)
	}
	if _, _, err := r.Get(t.Context(), "k"); !errors.Is(err, messages.StreamDrifted) {
		t.Fatalf("read: %v", err)
	}
	a.mustAPI("STREAM.UPDATE."+cfg.Name(), good)
	if err := <-changes; err != nil {
		t.Fatalf("not usable again: %v", err)
	}
	a.mustAPI("STREAM.DELETE."+cfg.Name(), nil)
	if err := <-changes; !errors.Is(err, messages.StreamForeign) {
		t.Fatalf("told %v", err)
	}
}

func TestReconnectVoidsTheProof(t *testing.T) {
	dir := t.TempDir()
	s := start(t, &server.Options{ServerName: "one", StoreDir: dir, Port: server.RANDOM_PORT})
	port := s.Addr().(*net.TCPAddr).Port
	conn := dial(t, s.ClientURL())
	cfg := config("s", 1)
	met := open(t, conn, cfg)
	changes := make(chan error, 10)
	// The interval is an hour: only the connection's return can prove it again.
	r := stream.NewLeaderReader(conn, stream.ReaderConfig{Config: cfg, Remembered: met,
		ProveEvery: time.Hour, OnChange: func(err error) { changes <- err }})
	run(t, r)
	if err := <-changes; err != nil {
		t.Fatal(err)
	}
	away := conn.StatusChanged(nats.RECONNECTING)
	defer conn.RemoveStatusListener(away)
	s.Shutdown()
	s.WaitForShutdown()
	<-away
	if _, _, err := r.Get(t.Context(), "k"); !errors.Is(err, messages.Unproved) {
		t.Fatalf("while away: %v", err)
	}
	start(t, &server.Options{ServerName: "one", StoreDir: dir, Port: port})
	eventually(t, "it is usable again", func() error {
		_, _, err := r.Get(t.Context(), "k")
		return err
	})
	if lives := conn.Stats().Reconnects; lives == 0 {
		t.Fatal("the connection was never lost")
	}
}

func TestSharedReadsUnderLoad(t *testing.T) {
	conn := dial(t, startServer(t).ClientURL())
	cfg := config("s", 1)
	met := open(t, conn, cfg)
	b := stream.New(conn, cfg, stream.NewLanes(stream.MaxLanes))
	write(t, b, "k", "0")
	r := stream.NewLeaderReader(conn, stream.ReaderConfig{Config: cfg, Remembered: met})
	run(t, r)
	usable(t, r)
	// Each reader notes the last acknowledged value before it asks; it may get that one or a later one.
	var acked lastWritten
	var reading sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 16 {
		reading.Go(func() {
			for ctx.Err() == nil {
				least := acked.get()
				row, _, err := r.Get(t.Context(), "k")
				if err != nil {
					t.Errorf("read: %v", err)
					return
				}
				if got := number(string(row.Value)); got < least {
					t.Errorf("asked after %d was acknowledged, and got %d", least, got)
					return
				}
			}
		})
	}
	for n := 1; n <= 200; n++ {
		write(t, b, "k", fmt.Sprint(n))
		acked.set(n)
	}
	cancel()
	reading.Wait()
}

// lastWritten is the last value whose write was acknowledged.
type lastWritten struct {
	mu sync.Mutex
	n  int
}

func (l *lastWritten) get() int { l.mu.Lock(); defer l.mu.Unlock(); return l.n }
func (l *lastWritten) set(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n = n
}

func number(s string) (n int) { _, _ = fmt.Sscan(s, &n); return n }
