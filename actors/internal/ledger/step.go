package ledger

import "context"

// Step is one transition of a barrier, for the lane of whoever holds the plane.
type Step struct {
	// Writes are the rows of the transition, without the owed one. At least one is
	// pinned to its own past: it is created, or replaces what was read.
	Writes []Write
	// Begin and Done are operations that this step adds to what is owed, and removes.
	Begin, Done []string
}

// Empty reports whether there is nothing to write: what the step is for stands
// already.
func (s Step) Empty() bool { return len(s.Writes) == 0 }

// Lane lands steps, fenced and one after another: claim.Lane.
type Lane interface {
	// Write returns the revision of the step's last row. ErrLost says that a row has
	// moved, and that nothing landed.
	Write(ctx context.Context, step Step) (uint64, error)
}
