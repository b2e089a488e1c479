package natsdtest

import (
	"testing"
	"time"
)

// Eventually tries until there is no error, for up to a minute. It is for states
// of a server that no event announces.
func Eventually(t testing.TB, what string, try func() error) {
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
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s: never; last: %v", what, err)
		}
	}
}
