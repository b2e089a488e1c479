package ledger

import (
	"context"
	"strings"
)

// Scan asks for every row that matches a filter, with the proof that none is missing.
type Scan struct {
	// Filter is of tokens, `*` and a trailing `>`.
	Filter string
	// Milestone is a write that was acknowledged before: the scan counts only if it
	// has seen it, since a replica that lags passes every other check with rows
	// missing. The zero value asks for no such proof.
	Milestone Milestone
}

// Milestone is a write that was acknowledged.
type Milestone struct {
	Key      string
	Revision uint64
}

// IsZero reports whether there is no milestone here.
func (m Milestone) IsZero() bool { return m == Milestone{} }

// Scanner enumerates rows. Only the holder of the plane may use one: see package
// claim.
type Scanner interface {
	// Scan reads every row that matched the filter when the call began, sorted by key,
	// each as it stood at some moment since. It fails as a whole, with
	// messages.ScanIncomplete when it cannot prove that it saw all (the milestone
	// included), ScanRefused when the stream will not have it, RowCorrupt at a marker.
	Scan(ctx context.Context, ask Scan) ([]Row, error)
}

// Marker is a backend that can leave a milestone.
type Marker interface {
	// Milestone writes a row that says nothing but that it was written after whatever
	// was acknowledged before.
	Milestone(ctx context.Context) (Milestone, error)
}

// Matches reports whether key lies in a filter of tokens, `*` and a trailing `>`.
func Matches(filter, key string) bool {
	want, have := strings.Split(filter, "."), strings.Split(key, ".")
	for i, token := range want {
		if token == ">" {
			return len(have) > i
		}
		if i >= len(have) || (token != "*" && token != have[i]) {
			return false
		}
	}
	return len(have) == len(want)
}
