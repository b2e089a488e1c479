// Package writer is the actor that writes what grants and exchanges change. It
// makes the authority stream where there is none, and is the only standing client
// that may.
//
// Each request is one transition of the ledger, answered when it is durable.
package writer
