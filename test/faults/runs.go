package faults

import (
	"fmt"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Paths of the actors of a space's first admission of a run, and of the first attempt at
// it, behind the one registration that a row begins with.
const (
	FirstAdmission = "operations/run-admission-2"
	FirstReading   = "operations/run-journal-3"
	FirstAttempt   = "operations/run-attempt-4"
	FirstDelivery  = "operations/run-journal-5"
)

// A RunRow kills an actor of a question about a run. Whatever it is, the caller is told,
// nothing of the actor is left, and the same question is then answered, and no other one
// that contradicts it.
type RunRow struct {
	Actor string
	Way   Way
	Phase Phase
	// Message is of the type that is struck or lost; for nil it is the Nth of all.
	Message any
	Nth     int
	// Done says that the caller is told of success.
	Done bool
}

// Name of the row.
func (r RunRow) Name() string {
	name := fmt.Sprintf("%s %s %s", r.Actor, r.Phase, r.Way)
	if r.Message != nil {
		name += fmt.Sprintf(" %T", r.Message)
	}
	return name + fmt.Sprintf(" %d", max(r.Nth, 1))
}

// asking is the number of the message by which an actor is asked: it opens, is told that
// it is connected, and is asked.
const asking = 3

// Runs are the rows of the table for the actors of runs.
func Runs() []RunRow {
	var rows []RunRow
	for actor, ask := range map[string]any{FirstAdmission: messages.AdmitRun{}, FirstAttempt: messages.AttemptRun{}} {
		rows = append(rows,
			RunRow{Actor: actor, Way: Strike, Phase: Opening, Message: &supervisor.Open{}},
			RunRow{Actor: actor, Way: Strike, Phase: Opening, Nth: 2}, // with its connection in hand
			RunRow{Actor: actor, Way: Strike, Phase: Opening, Message: ask},
			RunRow{Actor: actor, Way: Strike, Phase: Answered, Message: &supervisor.Close{}, Done: true},
		)
		for _, way := range []Way{Panic, Stop, Disconnect} {
			rows = append(rows, RunRow{Actor: actor, Way: way, Phase: Midway})
		}
	}
	for _, actor := range []string{FirstReading, FirstDelivery} {
		rows = append(rows,
			RunRow{Actor: actor, Way: Strike, Phase: Opening, Nth: 2},
			RunRow{Actor: actor, Way: Strike, Phase: Opening, Nth: asking},
			RunRow{Actor: actor, Way: Strike, Phase: Answered, Message: &supervisor.Close{}, Done: true},
		)
	}
	return append(rows,
		RunRow{Actor: FirstAdmission, Way: Lose, Phase: Opening, Message: messages.AdmitRun{}},
		RunRow{Actor: FirstAdmission, Way: Lose, Phase: Answered, Message: &supervisor.Close{}, Done: true},
	)
}
