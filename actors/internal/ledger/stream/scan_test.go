package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/contract"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
)

// scannables opens a stream of its own for each case.
func scannables(conn *nats.Conn, replicas int, which func(stream.Config) stream.Config) func(*testing.T) contract.Scannable {
	spaces := 0
	return func(t *testing.T) contract.Scannable {
		spaces++
		cfg := which(config(fmt.Sprintf("scan%d", spaces), replicas))
		open(t, conn, cfg)
		backend := stream.New(conn, cfg, stream.NewLanes(stream.MaxLanes))
		return contract.Scannable{Scanner: stream.NewScanner(conn, cfg), Marker: backend, Subject: contract.Subject{Backend: backend,
			Mark: func(t *testing.T, key string) {
				marker := nats.NewMsg(cfg.Subject(key))
				marker.Header.Set("KV-Operation", "DEL")
				if _, err := conn.RequestMsg(marker, patience); err != nil {
					t.Fatal(err)
				}
			}}}
	}
}

func TestScannerContractOnOneReplica(t *testing.T) {
	t.Parallel()
	conn := dial(t, startServer(t).ClientURL())
	t.Run("authority", func(t *testing.T) {
		contract.Scanner(t, scannables(conn, 1, func(c stream.Config) stream.Config { return c }))
	})
	t.Run("records", func(t *testing.T) {
		contract.Scanner(t, scannables(conn, 1, stream.Config.Records))
	})
}

// tap is a wire on which something happens just before a request goes out.
type tap struct {
	net.Conn
	t *tapped
}

type tapped struct {
	mu     sync.Mutex
	before map[string]func() // by what the request's subject holds
	seen   map[string]int
}

func (t *tapped) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return &tap{conn, t}, err
}

func (t *tap) Write(b []byte) (int, error) {
	for what, do := range t.t.meets(b) {
		t.t.mu.Lock()
		t.t.seen[what]++
		t.t.mu.Unlock()
		do()
	}
	return t.Conn.Write(b)
}

func (t *tapped) meets(b []byte) map[string]func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	met := map[string]func(){}
	for what, do := range t.before {
		if bytes.Contains(b, []byte(what)) {
			met[what] = do
		}
	}
	return met
}

// nth does something the nth time it is called, from 1.
func nth(n int, do func()) func() {
	calls := 0
	return func() {
		if calls++; calls == n {
			do()
		}
	}
}

// stage is a ledger with three rows, a scanner on a tapped wire, and an admin.
type stage struct {
	*testing.T
	admin   admin
	cfg     stream.Config
	backend *stream.Backend
	scanner *stream.Scanner
	rows    map[string]ledger.Row
}

const lane0 = "cotal-ledger-scan-0"

// setStage; before maps parts of subjects to what happens before such a request.
func setStage(t *testing.T, url string, space string, before func(*stage) map[string]func()) *stage {
	conn := dial(t, url)
	s := &stage{T: t, admin: admin{t, conn}, cfg: config(space, 1), rows: map[string]ledger.Row{}}
	open(t, conn, s.cfg)
	s.backend = stream.New(conn, s.cfg, stream.NewLanes(1))
	for _, key := range []string{"k.a", "k.b", "k.c"} {
		s.write(key, "first")
	}
	wire := &tapped{before: before(s), seen: map[string]int{}}
	s.scanner = stream.NewScanner(dial(t, url, nats.SetCustomDialer(wire)), s.cfg)
	t.Cleanup(func() {
		for what := range wire.before {
			if wire.seen[what] == 0 {
				t.Errorf("no request was %s", what)
			}
		}
	})
	return s
}

// write puts a value over a row.
func (s *stage) write(key, value string) {
	s.Helper()
	row := s.rows[key]
	row.Key, row.Value = key, []byte(value)
	at, err := s.backend.Send(s.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, row.Value)}})
	if err != nil {
		s.Error(err)
	}
	row.Revision = at
	s.rows[key] = row
}

// make makes a consumer of the scanner's name.
func (s *stage) make(filter string) {
	s.Helper()
	s.admin.mustAPI("CONSUMER.CREATE."+s.cfg.Name()+"."+lane0, map[string]any{"stream_name": s.cfg.Name(), "action": "create", "config": map[string]any{
		"name": lane0, "deliver_policy": "last_per_subject", "ack_policy": "none", "replay_policy": "instant", "mem_storage": true,
		"inactive_threshold": 30 * time.Second, "filter_subject": s.cfg.Subject(filter)}})
}

func (s *stage) remove() {
	s.Helper()
	s.admin.mustAPI("CONSUMER.DELETE."+s.cfg.Name()+"."+lane0, nil)
}

// steal takes n messages that were meant for the scanner.
func (s *stage) steal(n int) {
	s.Helper()
	inbox := nats.NewInbox()
	sub, err := s.admin.conn.SubscribeSync(inbox)
	if err != nil {
		s.Fatal(err)
	}
	if err := s.admin.conn.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+s.cfg.Name()+"."+lane0, inbox, []byte(fmt.Sprintf(`{"batch":%d,"no_wait":true}`, n))); err != nil {
		s.Fatal(err)
	}
	for range n {
		if _, err := sub.NextMsg(patience); err != nil {
			s.Error(err)
		}
	}
}

// pending waits until the consumer counts what was written: it learns of it a moment
// after the writer does.
func (s *stage) pending() {
	s.Helper()
	eventually(s, "the write is counted", func() error {
		if s.admin.mustAPI("CONSUMER.INFO."+s.cfg.Name()+"."+lane0, nil)["num_pending"] == 0.0 {
			return errors.New("nothing is pending")
		}
		return nil
	})
}

// consumers are those the stream has.
func (s *stage) consumers() []string {
	s.Helper()
	var names []string
	found, _ := s.admin.mustAPI("CONSUMER.NAMES."+s.cfg.Name(), nil)["consumers"].([]any)
	for _, name := range found {
		names = append(names, fmt.Sprint(name))
	}
	return names
}

// TestAScanMeetsTrouble disturbs a scan at every step that others can reach.
func TestAScanMeetsTrouble(t *testing.T) {
	t.Parallel()
	url := startServer(t).ClientURL()
	const create, look, next, remove = "CONSUMER.CREATE.", "CONSUMER.INFO.", "CONSUMER.MSG.NEXT.", "CONSUMER.DELETE."
	for i, c := range []struct {
		name   string
		before func(*stage) map[string]func()
		want   error
		// value of k.b, where the scan succeeds
		value string
	}{
		{"nothing", func(s *stage) map[string]func() { return nil }, nil, "first"},
		{"a consumer left behind", func(s *stage) map[string]func() {
			s.make("k.*")
			return nil
		}, nil, "first"},
		{"a consumer of our name with another filter", func(s *stage) map[string]func() {
			s.make("other.>")
			return nil
		}, nil, "first"},
		{"one that comes back in between", func(s *stage) map[string]func() {
			return map[string]func(){create: func() { s.make("other.>") }}
		}, messages.ScanRefused, ""},
		{"one that is exchanged before it is looked at", func(s *stage) map[string]func() {
			return map[string]func(){look: nth(1, func() { s.remove(); s.make("k.a") })}
		}, messages.ScanRefused, ""},
		{"one that is exchanged for its like", func(s *stage) map[string]func() {
			return map[string]func(){look: nth(2, func() { s.remove(); s.make("k.*"); s.steal(3) })}
		}, messages.ScanIncomplete, ""},
		{"a row overwritten before it is read", func(s *stage) map[string]func() {
			return map[string]func(){next: nth(1, func() { s.write("k.b", "second") })}
		}, nil, "second"},
		{"a row overwritten after it was read", func(s *stage) map[string]func() {
			return map[string]func(){look: nth(2, func() { s.write("k.b", "second"); s.pending() })}
		}, nil, "second"},
		{"a consumer deleted before the pull", func(s *stage) map[string]func() {
			return map[string]func(){next: s.remove}
		}, messages.ScanIncomplete, ""},
		{"a consumer deleted after the pull", func(s *stage) map[string]func() {
			return map[string]func(){look: nth(2, s.remove)}
		}, messages.ScanIncomplete, ""},
		{"the first message lost", func(s *stage) map[string]func() {
			return map[string]func(){next: nth(1, func() { s.steal(1) })}
		}, messages.ScanIncomplete, ""},
		{"every message lost", func(s *stage) map[string]func() {
			return map[string]func(){next: nth(1, func() { s.steal(3) })}
		}, messages.ScanIncomplete, ""},
		{"the last message lost", func(s *stage) map[string]func() {
			return map[string]func(){look: nth(2, func() { s.write("k.b", "second"); s.pending(); s.steal(1) })}
		}, messages.ScanIncomplete, ""},
		{"endless churn", func(s *stage) map[string]func() {
			return map[string]func(){look: func() { s.write("k.b", "again"); s.pending() }}
		}, messages.ScanIncomplete, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := setStage(t, url, fmt.Sprintf("t%d", i), c.before)
			rows, err := s.scanner.Scan(t.Context(), ledger.Scan{Filter: "k.*"})
			if left := s.consumers(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if c.want != nil {
				if !errors.Is(err, c.want) || rows != nil {
					t.Errorf("got %v, %v; want %v", rows, err, c.want)
				}
				t.Log(err)
				return
			}
			if err != nil || len(rows) != 3 || string(rows[1].Value) != c.value || rows[1].Revision != s.rows["k.b"].Revision {
				t.Errorf("got %+v, %v", rows, err)
			}
		})
	}
}

// TestAScannerMustBeAbleToRemove has a scanner that may do everything else: it makes
// nothing if it cannot be sure that nothing is there.
func TestAScannerMustBeAbleToRemove(t *testing.T) {
	t.Parallel()
	all := &server.User{Username: "all", Password: "x"}
	unable := &server.User{Username: "unable", Password: "x", Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Deny: []string{"$JS.API.CONSUMER.DELETE.>"}}, Subscribe: &server.SubjectPermission{Allow: []string{">"}}}}
	s := start(t, &server.Options{ServerName: "one", StoreDir: t.TempDir(), Port: server.RANDOM_PORT, Users: []*server.User{all, unable}})
	at := func(user string) string { return strings.Replace(s.ClientURL(), "nats://", "nats://"+user+":x@", 1) }
	conn := dial(t, at("all"))
	cfg := config("s", 1)
	open(t, conn, cfg)
	cfg.Timeout = 200 * time.Millisecond
	_, err := stream.NewScanner(dial(t, at("unable")), cfg).Scan(t.Context(), ledger.Scan{Filter: "k.*"})
	if err == nil || !messages.Describe(err).Retryable {
		t.Errorf("got %v", err)
	}
	a := admin{t, conn}
	if names := a.mustAPI("CONSUMER.NAMES."+cfg.Name(), nil)["consumers"]; fmt.Sprint(names) != "[]" && names != nil {
		t.Errorf("it made %v", names)
	}
}

// TestALongScanHoldsUpNobody has one scan wait for what never comes, while others pass.
func TestALongScanHoldsUpNobody(t *testing.T) {
	t.Parallel()
	waits := make(chan struct{})
	s := setStage(t, startServer(t).ClientURL(), "s", func(*stage) map[string]func() {
		return map[string]func(){"CONSUMER.MSG.NEXT.": nth(2, func() { close(waits) })}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.scanner.Scan(ctx, ledger.Scan{Filter: "k.*", Milestone: ledger.Milestone{Key: "k.a", Revision: 1 << 40}})
		ended <- err
	}()
	<-waits
	for range 2 * stream.ScanLanes {
		if _, err := s.scanner.Scan(t.Context(), ledger.Scan{Filter: "k.*"}); err != nil {
			t.Error(err)
		}
	}
	select {
	case err := <-ended:
		t.Errorf("it was no long scan: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, messages.ScanIncomplete) && !errors.Is(err, messages.BrokerAway) {
		t.Errorf("ended with %v", err)
	}
	if left := s.consumers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
