package callout

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/messages"
)

// held is a reader that keeps who asks waiting, one by one.
type held struct {
	mu      sync.Mutex
	waiting []func(any)
	asked   chan struct{} // room for every read of a test
}

func (h *held) answer(to func(any)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = append(h.waiting, to)
	h.asked <- struct{}{}
}

// letGo answers whoever waits.
func (h *held) letGo() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, to := range h.waiting {
		to(messages.Authority{ReadAt: time.Now()})
	}
	h.waiting = nil
}

func (s *stage) settle(ctx context.Context) (messages.Settled, error) {
	ref, _ := s.tree.Ref("1")
	return client.Ask[messages.Settled](ctx, ref, messages.SettleDecisions{})
}

func TestAResponderSettlesWhatHadBegun(t *testing.T) {
	t.Parallel()
	s := start(t)
	settled, err := s.settle(t.Context())
	s.must(err)
	in, _ := s.members()
	if len(settled.Connections) != 1 || settled.Connections[0].ClientID != in[0] || settled.Connections[0].ServerID != s.space.Server.ID() {
		t.Errorf("with nothing under way: %+v", settled)
	}

	h := &held{asked: make(chan struct{}, 64)}
	s.answer.Store(h.answer)
	var clients sync.WaitGroup
	clients.Go(s.knock)
	<-h.asked // its read has begun
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if settled, err := s.settle(short); err == nil {
		t.Errorf("it settles while a decision is under way: %+v", settled)
	}
	done := make(chan error, 1) // one settling
	go func() { _, err := s.settle(t.Context()); done <- err }()
	h.letGo()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if list := s.denials.List(); len(list) == 0 || list[0].Reason != messages.NotGranted.Reason {
		t.Errorf("it has settled and not answered: %+v", list)
	}
	clients.Wait()
}

// What began after the question is not waited for, or under load nothing would ever
// settle; what began before is, by everybody who asks.
func TestEachSettlingWaitsForWhatBeganBefore(t *testing.T) {
	b := newBegun()
	first := b.decision()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		if err := b.settled(over); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
	second := b.decision()
	one := b.turn()
	third := b.decision()
	if len(one) != 2 {
		t.Fatalf("%d cohorts are waited for", len(one))
	}
	closed := func(c *cohort) bool {
		select {
		case <-c.empty:
			return true
		default:
			return false
		}
	}
	first()
	if !closed(one[0]) || closed(one[1]) {
		t.Error("it does not wait for the second")
	}
	second()
	if !closed(one[1]) {
		t.Error("it waits for the third")
	}
	if later := b.turn(); len(later) != 1 {
		t.Errorf("%d cohorts are left", len(later))
	}
	third()
	if err := b.settled(t.Context()); err != nil || len(b.older) > 0 {
		t.Errorf("got %v, %d cohorts are kept", err, len(b.older))
	}
}
