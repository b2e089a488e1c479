package faults

import (
	"time"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

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
	// Strike panics in place of receiving a message.
	Strike Way = "panic at a message"
	// Lose has a message never reach it.
	Lose Way = "a message lost"
	// Delay has it stand still at a message until nobody waits any more.
	Delay Way = "still at a message"
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
	// CarriesOn: it lives on, who waited is told by the deadline, and connects go on.
	CarriesOn Outcome = "who waited is told and all goes on"
	// CloseTells: the close names the actor in its error, and everything has ended all
	// the same.
	CloseTells Outcome = "the close tells and ends everything"
	// CloseWaits: the close names the actor, by its connection, as still running, and
	// nothing counts as closed; a further close ends everything.
	CloseWaits Outcome = "the close waits for it, tells, and can be retried"
)

// Within is how long connects may fail and an actor or the plane may take to return.
const Within = 2 * time.Second

// A Row is one line of the table.
type Row struct {
	Actor   string
	Way     Way
	Phase   Phase
	Outcome Outcome
	// Message is of the type that is struck, lost or stood still at; nil is any.
	Message any
}

// Actors are those of a space, in open order.
func Actors() []string {
	return []string{
		"plane/writer", "plane/registrar", "plane/reader", "plane/issuer", "plane/barrier", "plane/observer", "plane/evictor",
		"plane/ledger-scanner", "plane/records-scanner", "plane/claim", "plane/retirement/sweeper", "plane/retirement/desk", "plane/admin",
		"callout/1", "callout/2", "presence", "exchange", "provisioning",
	}
}

// Table is every row.
func Table() []Row {
	var rows []Row
	for _, actor := range Actors() {
		rows = append(rows, Row{actor, Strike, Opening, StartFails, &supervisor.Open{}})
		for _, phase := range []Phase{Idle, Loaded} {
			for _, way := range []Way{Panic, Stop, Disconnect} {
				rows = append(rows, Row{actor, way, phase, alive(actor, way), nil})
			}
		}
		rows = append(rows, Row{actor, Strike, Closing, CloseTells, &supervisor.Close{}},
			Row{actor, Lose, Closing, CloseWaits, &supervisor.Close{}})
	}
	return append(rows,
		Row{"presence", Delay, Opening, StartFails, &supervisor.Open{}},

		Row{"plane/reader", Strike, Loaded, Returns, messages.ReadAuthority{}},
		Row{"plane/writer", Strike, Loaded, Returns, messages.PutGrant{}},
		Row{"plane/writer", Strike, Loaded, Returns, messages.Enrol{}},
		Row{"plane/writer", Strike, Loaded, Returns, messages.RevokeGrant{}},
		Row{"plane/barrier", Strike, Loaded, Returns, nil}, // the guard of the claim
		Row{"plane/reader", Lose, Loaded, CarriesOn, messages.ReadAuthority{}},
		Row{"plane/writer", Lose, Loaded, CarriesOn, messages.PutGrant{}},
		Row{"plane/writer", Lose, Loaded, CarriesOn, messages.Enrol{}},
		Row{"plane/writer", Lose, Loaded, CarriesOn, messages.RevokeGrant{}},
		Row{"plane/barrier", Lose, Loaded, CarriesOn, nil},
		Row{"plane/reader", Delay, Loaded, CarriesOn, messages.ReadAuthority{}},
		Row{"plane/writer", Delay, Loaded, CarriesOn, messages.PutGrant{}},

		Row{"callout/1", Strike, Closing, CloseTells, &supervisor.Drain{}},
		Row{"callout/2", Strike, Closing, CloseTells, &supervisor.Drain{}},
		Row{"exchange", Strike, Closing, CloseTells, &supervisor.Drain{}},
		Row{"callout/1", Lose, Closing, CloseWaits, &supervisor.Drain{}},
		Row{"exchange", Lose, Closing, CloseTells, &supervisor.Drain{}},
	)
}

// alive is what comes of a death while the space is open.
func alive(actor string, way Way) Outcome {
	switch actor {
	case "plane/registrar", "plane/claim", "plane/retirement/sweeper", "plane/retirement/desk", "exchange", "provisioning":
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
