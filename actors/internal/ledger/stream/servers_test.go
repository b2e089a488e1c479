package stream_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/contract"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// startServer runs one server with JetStream on a free port.
func startServer(t testing.TB) *server.Server {
	t.Helper()
	return start(t, &server.Options{ServerName: "one", StoreDir: t.TempDir(), Port: server.RANDOM_PORT})
}

func start(t testing.TB, opts *server.Options) *server.Server {
	t.Helper()
	s := startUnready(t, opts)
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not come up")
	}
	return s
}

func startUnready(t testing.TB, opts *server.Options) *server.Server {
	t.Helper()
	opts.Host, opts.JetStream, opts.NoLog, opts.NoSigs = "127.0.0.1", true, true, true
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// dial connects as our own connections do: no buffer while away, tried for ever.
func dial(t testing.TB, url string, more ...nats.Option) *nats.Conn {
	t.Helper()
	options := append([]nats.Option{nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond)}, more...)
	conn, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func config(space string, replicas int) stream.Config {
	return stream.Config{Space: space, Replicas: replicas, Instance: names.NewUID()}
}

// open makes the stream of a space; a young cluster may need a moment.
func open(t testing.TB, conn *nats.Conn, cfg stream.Config) stream.Installation {
	t.Helper()
	var met stream.Installation
	eventually(t, "the stream opens", func() (err error) {
		met, err = stream.Open(t.Context(), conn, cfg, stream.Installation{})
		return err
	})
	return met
}

// eventually retries where there is no event to wait for.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

// subjects opens a stream of its own for each case.
func subjects(conn *nats.Conn, replicas int) func(*testing.T) contract.Subject {
	var spaces atomic.Int64
	return func(t *testing.T) contract.Subject {
		cfg := config(fmt.Sprintf("s%d", spaces.Add(1)), replicas)
		open(t, conn, cfg)
		return contract.Subject{
			Backend: stream.New(conn, cfg, stream.NewLanes(stream.MaxLanes)),
			Mark: func(t *testing.T, key string) {
				marker := nats.NewMsg(cfg.Subject(key))
				marker.Header.Set("KV-Operation", "DEL")
				if _, err := conn.RequestMsg(marker, patience); err != nil {
					t.Fatal(err)
				}
			},
		}
	}
}

func TestContractOnOneReplica(t *testing.T) {
	contract.Backend(t, subjects(dial(t, startServer(t).ClientURL()), 1))
}

func TestTransitionsOnOneReplica(t *testing.T) {
	contract.Transitions(t, 50, subjects(dial(t, startServer(t).ClientURL()), 1))
}

func TestBarriersOnOneReplica(t *testing.T) {
	contract.Barriers(t, subjects(dial(t, startServer(t).ClientURL()), 1))
}

func TestIssuesOnOneReplica(t *testing.T) {
	t.Parallel()
	contract.Issues(t, subjects(dial(t, startServer(t).ClientURL()), 1))
}

func TestCutsOnOneReplica(t *testing.T) {
	t.Parallel()
	contract.Cuts(t, subjects(dial(t, startServer(t).ClientURL()), 1),
		"takeover", "retirement", "handle revocation", "session redemption") // of the others no row is written otherwise
}

// TestACrowdOfFirstExchanges is more than the server takes at once, in the lanes of
// one process.
func TestACrowdOfFirstExchanges(t *testing.T) {
	t.Parallel()
	contract.FirstExchanges(t, crowd, 4*patience, subjects(dial(t, startServer(t).ClientURL()), 1))
}

func TestClosedConnection(t *testing.T) {
	conn := dial(t, startServer(t).ClientURL())
	s := subjects(conn, 1)(t)
	conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := ledger.NewStore(s.Backend, ledger.DefaultPatience()).Apply(ctx, ledger.Batch{Writes: []ledger.Write{ledger.Create("k", nil)}})
	if !errors.Is(err, messages.BrokerAway) {
		t.Fatalf("got %v", err)
	}
}
