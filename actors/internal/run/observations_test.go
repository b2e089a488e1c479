package run_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/run"
	"github.com/cotal-ai/authplane/messages"
)

func request(i int) messages.AwaitRequest {
	return messages.AwaitRequest{Subject: fmt.Sprintf("run.%d", i), Digest: "sha256:x"}
}

func TestARequestIsAwaited(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	o := run.NewObservations(func() time.Time { return now })
	late := make(chan error, 1)
	go func() { late <- o.Await(t.Context(), request(1)) }()
	for {
		if _, waiting := o.Remembered(); waiting == 1 {
			break
		}
		runtime.Gosched()
	}
	o.See(request(1))
	if err := <-late; err != nil {
		t.Errorf("one that comes late: %v", err)
	}
	for range 2 {
		if err := o.Await(t.Context(), request(1)); err != nil {
			t.Errorf("one that was seen: %v", err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.Await(gone, request(2)); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %v", err)
	}
	other := request(1)
	other.Digest = "sha256:y"
	now = now.Add(run.ObservedFor)
	var both sync.WaitGroup
	for what, never := range map[string]messages.AwaitRequest{"another payload": other, "one that is too old": request(1)} {
		both.Go(func() {
			began := time.Now()
			if err := o.Await(t.Context(), never); !errors.Is(err, messages.RunUnwitnessed) || time.Since(began) < run.AwaitedFor {
				t.Errorf("%s: %v after %s", what, err, time.Since(began))
			}
		})
	}
	both.Wait()
	if _, waiting := o.Remembered(); waiting != 0 {
		t.Errorf("%d are waited for", waiting)
	}
}

// However much is published, no more is remembered than may be, and the newest of it.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	now := time.Unix(1, 0)
	o := run.NewObservations(func() time.Time { return now })
	const all = 200_000
	for i := range all {
		o.See(request(i))
		o.See(request(0))
	}
	if seen, _ := o.Remembered(); seen != 1<<16 {
		t.Errorf("%d are remembered", seen)
	}
	if err := o.Await(t.Context(), request(all-1)); err != nil {
		t.Errorf("the newest: %v", err)
	}
	now = now.Add(run.ObservedFor)
	o.See(request(all))
	if seen, _ := o.Remembered(); seen != 1 {
		t.Errorf("%d are remembered of what is too old", seen)
	}
}
