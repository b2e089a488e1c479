package e2e_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/test/world"
)

// TestAStoppedHolderSwallowsNoRequest stops a process that holds the plane, so that
// another takes it: whoever asks on the rail from then on is answered each time, though
// the stopped process has not left it.
func TestAStoppedHolderSwallowsNoRequest(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	former := startHolder(t, w.Config)
	w.Start()
	manager, alice := w.Person("manager", "laptop", "demo.>"), w.Person("alice", "laptop", "demo.>")
	nc, subject := w.OnBehalf(manager, alice)
	overTheRail(w, nc, subject, `{"op_id":"x"}`)
	knowEachOther(w)
	former.signal(syscall.SIGSTOP)
	awaitPlane(w)
	overTheRail(w, nc, subject, `{"op_id":"x"}`) // of one of the two
	for range 20 {
		if _, err := nc.Request(subject, []byte(`{"op_id":"x"}`), world.Patience/3); errors.Is(err, nats.ErrTimeout) {
			t.Fatal("a request was swallowed")
		} else if err != nil {
			t.Fatal(err)
		}
	}
	former.signal(syscall.SIGCONT)
}

// knowEachOther returns once each of two processes has heard the other say a few words
// of itself: the server counts what it passed on to each, its own words among them.
func knowEachOther(w *world.World) {
	w.Helper()
	w.Poll("the processes to know each other", func() bool {
		listed, err := w.Broker.Connz(&server.ConnzOptions{})
		if err != nil {
			w.Fatal(err)
		}
		know := 0
		for _, c := range listed.Conns {
			if c.Name == "cotal:auth-presence:main" && c.OutMsgs > c.InMsgs+4 {
				know++
			}
		}
		return know == 2
	})
}
