package hosting

import (
	"fmt"
	"testing"
	"time"
)

// What is seen again is as old as it was, and memory is bounded.
func TestSeenIsBounded(t *testing.T) {
	var s seen
	first := s.since("a")
	if again := s.since("a"); !again.Equal(first) {
		t.Errorf("seen at %s, then %s", first, again)
	}
	for i := range 3 * maxSeen {
		s.since(fmt.Sprint(i))
	}
	if len(s.at) > maxSeen {
		t.Errorf("%d are remembered", len(s.at))
	}
	if at := s.since("a"); at.Before(first) || time.Since(at) < 0 {
		t.Errorf("seen at %s", at)
	}
}
