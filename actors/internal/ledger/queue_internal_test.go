package ledger

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

func TestQueuesServeOneAtATime(t *testing.T) {
	var q queues
	var crowd sync.WaitGroup
	var inside, most int
	var mu sync.Mutex
	count := func(by int) {
		mu.Lock()
		defer mu.Unlock()
		inside += by
		most = max(most, inside)
	}
	for range 50 {
		crowd.Go(func() {
			leave, err := q.enter(t.Context(), messages.Principal{Owner: "o", Actor: "a"})
			if err != nil {
				t.Error(err)
				return
			}
			count(1)
			count(-1)
			leave()
		})
	}
	crowd.Wait()
	if most != 1 || len(q.lines) != 0 {
		t.Errorf("%d at once, %d lines left", most, len(q.lines))
	}
}

func TestQueuesAreLeftByWhoeverGivesUp(t *testing.T) {
	var q queues
	p := messages.Principal{Owner: "o", Actor: "a"}
	leave, err := q.enter(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.enter(ended, p); !errors.Is(err, messages.Contended) {
		t.Fatalf("got %v", err)
	}
	if other, err := q.enter(t.Context(), messages.Principal{Owner: "o", Actor: "b"}); err != nil {
		t.Fatal(err)
	} else {
		other()
	}
	leave()
	if again, err := q.enter(t.Context(), p); err != nil {
		t.Fatal(err)
	} else {
		again()
	}
	if len(q.lines) != 0 {
		t.Errorf("%d lines left", len(q.lines))
	}
}
