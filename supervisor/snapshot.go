package supervisor

import "time"

// A State is where a child stands.
type State string

const (
	StateOpening      State = "opening"
	StateOpen         State = "open"
	StateDraining     State = "draining"
	StateClosing      State = "closing"
	StateClosed       State = "closed"
	StateRestarting   State = "restarting" // dead, and will be opened again; a group: regroups, or a fence heals
	StateFailed       State = "failed"     // dead, and will not
	StateStillRunning State = "still-running"
)

// A Node is one child in a snapshot.
type Node struct {
	Path       string
	Group      bool
	State      State
	Since      time.Time // when State began
	Generation uint64    // lives so far
	Restarts   uint64
	LastError  error // of the last death, failed open or refused close; nil if there was none
	Label      string
	Waiting    int      // messages in the mailbox
	InFlight   int      // requests that were accepted and are not answered, the waiting ones included
	Running    []string // what has not ended of a life that is over
}
