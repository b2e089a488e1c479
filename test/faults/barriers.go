package faults

import (
	"fmt"

	"github.com/cotal-ai/authplane/actors/claim"
	"github.com/cotal-ai/authplane/actors/scanner"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// TakeoverID is the takeover that the table's barriers run.
const TakeoverID = "takeover00000000000000000000"

// A BarrierRow strikes one message on the way of a takeover or a retirement. Whatever
// it is, the operation ends, with its proof, and by itself.
type BarrierRow struct {
	Kind  messages.OperationKind
	Fault Fault
}

// Name of the row.
func (r BarrierRow) Name() string {
	name := fmt.Sprintf("%s, %s %s", r.Kind, r.Fault.Harm, r.Fault.Actor)
	if r.Fault.Message != nil {
		name += fmt.Sprintf(" at %T", r.Fault.Message)
	}
	return name + fmt.Sprintf(" %d", max(r.Fault.Nth, 1))
}

// Barriers are the rows of the table for every step of both barriers.
func Barriers() []BarrierRow {
	var rows []BarrierRow
	add := func(kind messages.OperationKind, f Fault) { rows = append(rows, BarrierRow{kind, f}) }
	for kind, steps := range map[messages.OperationKind]int{messages.Takeover: 4, messages.Retirement: 5} {
		for n := range steps {
			add(kind, Fault{Actor: "plane/claim", Harm: Throw, Message: claim.WriteStep{}, Nth: n + 1})
		}
	}
	add(messages.Retirement, Fault{Actor: "plane/claim", Harm: Throw, Message: claim.Enumerate{}})
	add(messages.Retirement, Fault{Actor: "plane/ledger-scanner", Harm: Throw, Message: scanner.Scan{}})
	for _, harm := range []Harm{Throw, Drop} {
		add(messages.Retirement, Fault{Actor: "plane/observer", Harm: harm, Message: messages.ObserveServers{}})
		add(messages.Takeover, Fault{Actor: "plane/observer", Harm: harm, Message: messages.SweepConnections{}})
		add(messages.Retirement, Fault{Actor: "plane/evictor", Harm: harm, Message: messages.KickConnections{}})
		add(messages.Retirement, Fault{Actor: "presence", Harm: harm, Message: messages.SettleResponders{}})
		add(messages.Retirement, Fault{Actor: "plane/writer", Harm: harm, Message: messages.Unask{}})
	}
	add(messages.Retirement, Fault{Actor: "plane/observer", Harm: Throw, Message: messages.SweepConnections{}, Nth: 3})
	for n := range 3 {
		add(messages.Retirement, Fault{Actor: "plane/retirement/desk", Harm: Throw, Nth: n + 1})
	}
	for n := range 2 {
		add(messages.Retirement, Fault{Actor: "plane/retirement/sweeper", Harm: Throw, Nth: n + 1})
	}
	for n := range 4 {
		add(messages.Retirement, Fault{Actor: "plane/barrier", Harm: Throw, Nth: 5*n + 1})
	}
	add(messages.Takeover, Fault{Actor: "plane/retirement/" + TakeoverID, Harm: Throw, Message: &supervisor.Open{}})
	return rows
}
