package faults

import (
	"fmt"

	"github.com/cotal-ai/authplane/actors/provisioning"
	"github.com/cotal-ai/authplane/supervisor"
)

// Paths of the actors of a space's first enrolment, and of the first removal after it.
const (
	FirstProvisioning   = "operations/provisioning-1"
	FirstDeprovisioning = "operations/deprovisioning-2"
)

// A ProvisionRow does harm on the way of an enrolment, or of the removal of what it made.
// Whatever it is, nothing of the actor and its connection is left, the caller is told of
// success or of what passes, and the same question, or nobody at all, brings it to its
// end: everything is there, or nothing.
type ProvisionRow struct {
	Fault Fault
	// Kill is the way in which the enrolment's actor dies while the fault holds somebody
	// else; empty for none.
	Kill Way
	// Leaving has the space close while the fault holds, and start again.
	Leaving bool
	// Removing strikes the removal in place of the enrolment.
	Removing bool
}

// Name of the row.
func (r ProvisionRow) Name() string {
	name := fmt.Sprintf("%s %s at %T %d", r.Fault.Harm, r.Fault.Actor, r.Fault.Message, max(r.Fault.Nth, 1))
	switch {
	case r.Kill != "":
		name += ", then " + string(r.Kill)
	case r.Leaving:
		name += ", then the space closes"
	}
	return name
}

// The writes of one enrolment, by their number: of the plan, whose each part is, that all
// are made, and that it is ready.
const (
	writePlan = 1 + iota
	writeOwned
	writeMade
	writeReady
)

// Provisions are the rows of the table for the actors of provisioning.
func Provisions() []ProvisionRow {
	call := func(path string, removing bool) []ProvisionRow {
		return []ProvisionRow{
			{Fault: Fault{Actor: path, Harm: Throw, Message: &supervisor.Open{}}, Removing: removing},
			{Fault: Fault{Actor: path, Harm: Throw, Nth: 2}, Removing: removing}, // with its connection in hand
			{Fault: Fault{Actor: path, Harm: Throw, Message: provisioning.Do{}}, Removing: removing},
			{Fault: Fault{Actor: path, Harm: Throw, Message: &supervisor.Close{}}, Removing: removing},
		}
	}
	rows := append(call(FirstProvisioning, false), call(FirstDeprovisioning, true)...)
	at := func(harm Harm, message any, nth int) Fault {
		return Fault{Actor: "plane/writer", Harm: harm, Message: message, Nth: nth}
	}
	for _, way := range []Way{Panic, Stop, Disconnect} {
		rows = append(rows, ProvisionRow{Fault: at(Hold, provisioning.JournalWrite{}, writeOwned), Kill: way})
	}
	rows = append(rows, ProvisionRow{Fault: at(Throw, provisioning.JournalGrant{}, 1)}, ProvisionRow{Fault: at(Hold, provisioning.JournalGrant{}, 1), Leaving: true})
	for n := writePlan; n <= writeReady; n++ {
		rows = append(rows, ProvisionRow{Fault: at(Throw, provisioning.JournalWrite{}, n)}, ProvisionRow{Fault: at(Hold, provisioning.JournalWrite{}, n), Leaving: true})
	}
	return rows
}
