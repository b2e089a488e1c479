package faults

import "time"

// A Phase is what the space does while the actor dies.
type Phase string

const (
	// Opening: the actor dies over its own opening.
	Opening Phase = "opening"
	// Idle: nobody asks anything.
	Idle Phase = "idle"
	// Loaded: people connect, exchange, are granted and revoked all the time.
	Loaded Phase = "under load"
	// Closing: the actor dies over its own close.
	Closing Phase = "closing"
)

// A Way is how the actor dies.
type Way string

const (
	// Panic in its Receive.
	Panic Way = "panic"
	// Stop behind the supervisor's back.
	Stop Way = "stop"
	// Disconnect cuts the connections it holds.
	Disconnect Way = "disconnect"
)

// An Outcome is what must come of it.
type Outcome string

const (
	// StartFails: the start fails with an error that names the actor, and everything
	// opened before is closed in the exact reverse order.
	StartFails Outcome = "the start fails and is unwound"
	// Returns: the actor lives again and the space is ready, while connects go on.
	Returns Outcome = "it returns alone"
	// Fences: the plane is fenced and heals under a new claim, while connects go on.
	Fences Outcome = "the plane is fenced and heals"
	// Inapplicable: it cannot die that way, which is said, and nothing happens.
	Inapplicable Outcome = "it cannot die that way"
	// CloseTells: the close names the actor in its error, and everything has ended all
	// the same.
	CloseTells Outcome = "the close tells and ends everything"
)

// Within is how long connects may fail and an actor or the plane may take to return.
const Within = 2 * time.Second

// A Row is one line of the table.
type Row struct {
	Actor   string
	Way     Way
	Phase   Phase
	Outcome Outcome
}

// Actors are those of a space, in open order.
func Actors() []string {
	return []string{
		"plane/writer", "plane/registrar", "plane/reader", "plane/issuer", "plane/barrier", "plane/observer", "plane/evictor",
		"plane/ledger-scanner", "plane/records-scanner", "plane/claim",
		"callout/1", "callout/2", "presence", "exchange",
	}
}

// Table is every row.
func Table() []Row {
	var rows []Row
	for _, actor := range Actors() {
		rows = append(rows, Row{actor, Panic, Opening, StartFails})
		for _, phase := range []Phase{Idle, Loaded} {
			for _, way := range []Way{Panic, Stop, Disconnect} {
				rows = append(rows, Row{actor, way, phase, alive(actor, way)})
			}
		}
		rows = append(rows, Row{actor, Panic, Closing, CloseTells})
	}
	return rows
}

// alive is what comes of a death while the space is open.
func alive(actor string, way Way) Outcome {
	switch actor {
	case "plane/registrar", "plane/claim", "exchange":
		if way == Disconnect {
			return Inapplicable // it holds no connection
		}
	}
	switch actor {
	case "plane/ledger-scanner", "plane/records-scanner", "plane/claim":
		return Fences
	}
	return Returns
}
