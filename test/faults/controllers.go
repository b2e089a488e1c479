package faults

import "github.com/cotal-ai/authplane/messages"

// A ControllerRow has the issuer die over a controller's question. Whatever it is, who
// asked is told or answered, nothing is answered twice, and the same question asked
// again has one answer. What dies while the issuer writes is tested where its server is
// a process that can stand still.
type ControllerRow struct {
	Way Way
	// Told says that the caller is told of no success while he waits.
	Told bool
}

// ControllerMessage is the one that is struck or lost.
var ControllerMessage = messages.AskController{}

// ControllerRows are the rows of the table for the issuer over a controller's question.
func ControllerRows() []ControllerRow {
	return []ControllerRow{{Way: Strike}, {Way: Lose, Told: true}}
}
