// Package evict proves that somebody is no longer connected anywhere, and has the
// servers drop whoever still is. It says so only of whom no server of the roster
// lists any more, after every connect that was decided on an older state is over;
// whoever cannot be told about is never gone.
//
// The number of sweeps does not depend on how many principals are to go, nor on how
// many connections they have: one sweep finds all, one call drops all, two more
// without a trace prove it.
//
// What may come in: when to sweep, whom to drop, and when to be sure. What may not:
// how servers are asked (that is the sweep room's), the ledger, and actors. Nothing
// new may be let in by the time Run is called: that is the caller's to make durable,
// and no eviction ends otherwise.
package evict
