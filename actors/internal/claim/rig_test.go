package claim_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

// longEnough bounds the wait for something that must happen.
const longEnough = 20 * time.Second

// servers are an oracle that knows what it was told of each connection.
type servers struct {
	mu       sync.Mutex
	verdicts map[string]messages.Verdict // by user; unknown otherwise
	asked    int
}

func (s *servers) Liveness(_ context.Context, c messages.ConnectionTuple) (messages.Verdict, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if verdict, found := s.verdicts[c.User]; found {
		return verdict, "server " + c.ServerName + " says so"
	}
	return messages.Unknown, "server " + c.ServerName + " does not answer"
}

func (s *servers) say(c messages.ConnectionTuple, v messages.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verdicts[c.User] = v
}

func (s *servers) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// space is a ledger with processes that may want its plane.
type space struct {
	*testing.T
	backend *memory.Backend
	servers *servers
	opened  int
}

func newSpace(t *testing.T) *space {
	return &space{T: t, backend: memory.New(), servers: &servers{verdicts: map[string]messages.Verdict{}}}
}

// process is a fresh process: its own run, its own connections.
func (s *space) process() claim.Config { return s.over(s.backend) }

func (s *space) over(b ledger.Backend) claim.Config {
	s.opened += 2
	return claim.Config{Store: ledger.NewStore(b, ledger.Patience{First: 1, Most: time.Millisecond, Budget: 20 * time.Millisecond}),
		Oracle: s.servers, Run: &claim.Run{}, Ledger: connection(s.opened - 1), Records: connection(s.opened), Host: "host-a"}
}

func (s *space) acquire(c claim.Config) *claim.Held {
	s.Helper()
	held, err := claim.Acquire(s.Context(), c)
	if err != nil {
		s.Fatalf("acquire: %v", err)
	}
	return held
}

// died says of a holder's connections that they are gone.
func (s *space) died(held *claim.Held) {
	s.servers.say(held.Claim().Ledger, messages.Gone)
	s.servers.say(held.Claim().Records, messages.Gone)
}

// plane is the row as it stands.
func (s *space) plane() ledger.Row {
	s.Helper()
	found, _, err := s.backend.Get(s.Context(), ledger.PlaneKey)
	if err != nil {
		s.Fatal(err)
	}
	return found
}

// put writes a claim over whatever stands, as no process of ours would.
func (s *space) put(value []byte) {
	s.Helper()
	if _, err := s.backend.Send(s.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Replace(s.plane(), value)}}); err != nil {
		s.Fatal(err)
	}
}

func (s *space) putClaim(c messages.Claim) {
	s.Helper()
	value, err := ledger.EncodeClaim(c)
	if err != nil {
		s.Fatal(err)
	}
	s.put(value)
}

func (s *space) want(what string, err error, want messages.Error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%s: got %v, want %v", what, err, want)
	}
	if messages.Describe(err) != want {
		s.Errorf("%s: it is described as %+v", what, messages.Describe(err))
	}
}

// counted counts what reaches a backend, and may lose it.
type counted struct {
	ledger.Backend
	mu    sync.Mutex
	sends int
	gets  int
	// away answers nothing; before, if set, runs before each send, and may fail it.
	away   bool
	before func(ledger.Batch) error
	after  func(ledger.Batch) error
}

func (c *counted) isAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away
}

func (c *counted) setAway(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

func (c *counted) count() (gets, sends int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gets, c.sends
}

func (c *counted) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	c.mu.Lock()
	c.gets++
	c.mu.Unlock()
	if c.isAway() {
		return ledger.Row{}, false, messages.BrokerAway
	}
	return c.Backend.Get(ctx, key)
}

func (c *counted) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	c.mu.Lock()
	c.sends++
	c.mu.Unlock()
	if c.isAway() {
		return 0, ledger.ErrNotApplied
	}
	if c.before != nil {
		if err := c.before(b); err != nil {
			return 0, err
		}
	}
	last, err := c.Backend.Send(ctx, b)
	if err == nil && c.after != nil {
		err = c.after(b)
	}
	return last, err
}

// once does something the first time it is asked, and then nothing.
func once(do func() error) func(ledger.Batch) error {
	done := false
	return func(ledger.Batch) error {
		if done {
			return nil
		}
		done = true
		return do()
	}
}

func has(text string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
