package stream_test

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
)

// far is a link on which everything that is received arrives a while later, in order,
// however much of it there is.
type far struct{ delay time.Duration }

func (f far) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	l := &farConn{Conn: conn, parcels: make(chan parcel, 1<<16)} // more than are ever under way
	go l.receive(f.delay)                                        // ends with the connection
	return l, nil
}

type farConn struct {
	net.Conn
	parcels chan parcel
	rest    []byte
	err     error
}

// parcel is what was received at once, and when it may be seen.
type parcel struct {
	data []byte
	err  error
	at   time.Time
}

func (c *farConn) receive(delay time.Duration) {
	for {
		buffer := make([]byte, 32<<10)
		n, err := c.Conn.Read(buffer)
		c.parcels <- parcel{buffer[:n], err, time.Now().Add(delay)}
		if err != nil {
			return
		}
	}
}

func (c *farConn) Read(b []byte) (int, error) {
	if len(c.rest) == 0 && c.err == nil {
		p := <-c.parcels
		if p.err == nil {
			<-time.After(time.Until(p.at))
		}
		c.rest, c.err = p.data, p.err
	}
	if len(c.rest) == 0 {
		return 0, c.err
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// TestAWideFamilyOverALongLink scans 5,000 rows where each answer takes 300 ms: the
// whole is seen, and scans of little that begin meanwhile end long before it.
func TestAWideFamilyOverALongLink(t *testing.T) {
	t.Parallel()
	url := startServer(t).ClientURL()
	near := dial(t, url)
	cfg := config("far", 1)
	open(t, near, cfg)
	backend := stream.New(near, cfg, stream.NewLanes(1))
	const wide = 5000
	for batch := range wide / 500 {
		var writes []ledger.Write
		for i := range 500 {
			writes = append(writes, ledger.Create(fmt.Sprintf("wide.%02d.%03d", batch, i), make([]byte, 200)))
		}
		if _, err := backend.Send(t.Context(), ledger.Batch{Writes: writes}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := backend.Send(t.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Create("small.a", []byte("x"))}}); err != nil {
		t.Fatal(err)
	}
	cfg.Timeout = patience
	scanner := stream.NewScanner(dial(t, url, nats.SetCustomDialer(far{300 * time.Millisecond}), nats.Timeout(patience)), cfg)
	ended := make(chan error, 1)
	go func() {
		rows, err := scanner.Scan(t.Context(), ledger.Scan{Filter: "wide.>"})
		if err == nil && len(rows) != wide {
			err = fmt.Errorf("%d rows", len(rows))
		}
		ended <- err
	}()
	if rows, err := scanner.Scan(t.Context(), ledger.Scan{Filter: "small.*"}); err != nil || len(rows) != 1 {
		t.Errorf("the small one: %d rows, %v", len(rows), err)
	}
	select {
	case err := <-ended:
		t.Errorf("the wide one ended first: %v", err)
	default:
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestTwoScannersOfOneStream has two scan at once, as only processes can of which one
// has lost the claim: each scan is whole or fails, and says that it may be repeated.
func TestTwoScannersOfOneStream(t *testing.T) {
	t.Parallel()
	url := startServer(t).ClientURL()
	s := setStage(t, url, "two", func(*stage) map[string]func() { return nil })
	var scanning sync.WaitGroup
	for range 2 {
		scanner := stream.NewScanner(dial(t, url), s.cfg)
		scanning.Go(func() {
			for range 100 {
				rows, err := scanner.Scan(t.Context(), ledger.Scan{Filter: "k.*"})
				switch {
				case err == nil && len(rows) != 3:
					t.Errorf("a short list: %v", rows)
				case err != nil && !errors.Is(err, messages.ScanRefused) && !errors.Is(err, messages.ScanIncomplete) && !errors.Is(err, messages.BrokerAway):
					t.Errorf("got %v", err)
				}
			}
		})
	}
	scanning.Wait()
}
