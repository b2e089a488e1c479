// Package hosting registers the instances of services that others serve, and repairs
// the gate of one whose registration died.
//
// Each is a call with an actor of its own, which may write the rows of that one
// instance for a minute; see package operations. Nothing is remembered but what stands
// in the ledger: whatever a call stops in the middle of, a later registration or a
// repair goes on from there.
package hosting
