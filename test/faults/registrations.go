package faults

import (
	"fmt"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// The phases of the actor of one registration.
const (
	// Midway: what was issued is revoked, and the former process is being evicted.
	Midway Phase = "mid-way"
	// Answered: the registration is done, and its actor ends.
	Answered Phase = "answered"
	// Leaving: the space closes while the registration is mid-way.
	Leaving Phase = "the space closes"
)

// FirstRegistration is the path of the actor of a space's first registration after the
// one that the row begins with.
const FirstRegistration = "operations/registration-2"

// A RegistrationRow kills the actor of a registration. Whatever it is, the caller is
// told, nothing of the actor is left, and the gate is as it was or frozen, so that a
// repair, and the next registration, go on from there.
type RegistrationRow struct {
	Way   Way
	Phase Phase
	// Message is of the type that is struck or lost; for nil it is the Nth of all.
	Message any
	Nth     int
	// Frozen says how the gate is left.
	Frozen bool
	// Done says that the caller is told of success.
	Done bool
}

// Name of the row.
func (r RegistrationRow) Name() string {
	name := fmt.Sprintf("%s %s", r.Phase, r.Way)
	if r.Message != nil {
		name += fmt.Sprintf(" %T", r.Message)
	}
	return name + fmt.Sprintf(" %d", max(r.Nth, 1))
}

// Registrations are the rows of the table for the actor of a registration.
func Registrations() []RegistrationRow {
	rows := []RegistrationRow{
		{Way: Strike, Phase: Opening, Message: &supervisor.Open{}},
		{Way: Strike, Phase: Opening, Nth: 2}, // with its connection in hand
		{Way: Lose, Phase: Opening, Message: &supervisor.Open{}},
		{Way: Strike, Phase: Opening, Message: messages.RegisterInstance{}},
		{Way: Lose, Phase: Opening, Message: messages.RegisterInstance{}},
	}
	for _, way := range []Way{Panic, Stop, Disconnect} {
		rows = append(rows, RegistrationRow{Way: way, Phase: Midway, Frozen: true})
	}
	return append(rows,
		RegistrationRow{Way: Strike, Phase: Answered, Message: &supervisor.Close{}, Done: true},
		RegistrationRow{Way: Lose, Phase: Answered, Message: &supervisor.Close{}, Done: true},
		RegistrationRow{Way: Strike, Phase: Leaving, Message: &supervisor.Close{}, Frozen: true},
		RegistrationRow{Way: Lose, Phase: Leaving, Message: &supervisor.Close{}, Frozen: true},
	)
}
