package barrier

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/messages"
)

// TestProofsAreShared has a crowd ask while one proof is under way: they share the
// next, and none is given the one that began before he asked.
func TestProofsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p proofs
		conn := &broker.Conn{}
		var made atomic.Int64
		release := make(chan error) // one for each proof
		do := func(context.Context) error { made.Add(1); return <-release }
		var first, crowd sync.WaitGroup
		first.Go(func() {
			if err := p.share(t.Context(), conn, do); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		for range 100 {
			crowd.Go(func() {
				if err := p.share(t.Context(), conn, do); !errors.Is(err, messages.BrokerAway) {
					t.Errorf("given %v", err)
				}
			})
		}
		synctest.Wait()
		release <- nil
		first.Wait()
		synctest.Wait()
		if made.Load() != 2 {
			t.Fatalf("%d were made", made.Load())
		}
		release <- messages.BrokerAway
		crowd.Wait()
		// Nobody waits any more: the next is made anew, and another connection's apart.
		for _, on := range []*broker.Conn{conn, {}} {
			if err := p.share(t.Context(), on, func(context.Context) error { made.Add(1); return nil }); err != nil {
				t.Error(err)
			}
		}
		if made.Load() != 4 || len(p.running) != 0 {
			t.Errorf("%d were made, %d run", made.Load(), len(p.running))
		}
	})
}

func TestNobodyWaitsForAProofForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p proofs
		conn := &broker.Conn{}
		release := make(chan struct{}) // closed at the end
		var first sync.WaitGroup
		first.Go(func() {
			_ = p.share(t.Context(), conn, func(context.Context) error { <-release; return nil })
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.share(ctx, conn, nil); !errors.Is(err, messages.BrokerAway) {
			t.Errorf("given %v", err)
		}
		close(release)
		first.Wait()
	})
}
