// Package operations holds the calls of a host or an operator that need a connection
// of their own: the registration of a service's instance, and the repair of a gate
// that a registration which died left frozen.
//
// It is a group. Each call has an actor in it, which opens a connection that may write
// the rows of that one instance for a minute, does what it is asked, and ends; the
// connection is closed in every outcome. Nothing is remembered but what stands in the
// ledger: whatever a call stops in the middle of, a later registration or a repair
// goes on from there.
//
// When the space closes, no call is taken any more, and those that are inside end in
// the order in which they came: each has a moment to finish.
package operations
