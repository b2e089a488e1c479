package faults

import (
	"fmt"

	"github.com/cotal-ai/authplane/messages"
)

// An IssueRow kills the issuer while it issues to a process of an instance. Whatever it
// is, nobody is told of what is not recorded, asking again is answered, and the next
// process finds what was recorded and ends it.
type IssueRow struct {
	Way   Way
	Phase Phase
	// Told says that the caller is answered all the same, by the issuer's next life;
	// otherwise he gives up, and is told that he may ask again.
	Told bool
}

// Name of the row.
func (r IssueRow) Name() string { return fmt.Sprintf("%s %s", r.Phase, r.Way) }

// Fault is what the row arms, if it strikes a message.
func (r IssueRow) Fault() (f Fault, strikes bool) {
	harm := map[Way]Harm{Strike: Throw, Lose: Drop}[r.Way]
	return Fault{Actor: "plane/issuer", Harm: harm, Message: messages.IssueInstanceCredential{}}, harm != ""
}

// Issues are the rows of the table for the issuer. Midway it has read the gate, and
// waits for the root of the principal before it writes.
func Issues() []IssueRow {
	return []IssueRow{
		{Way: Strike, Phase: Opening, Told: true},
		{Way: Lose, Phase: Opening},
		{Way: Panic, Phase: Midway, Told: true},
		{Way: Stop, Phase: Midway, Told: true},
		{Way: Disconnect, Phase: Midway, Told: true},
	}
}
