// Package claim decides which process runs the plane of a space.
//
// The claim is one row. Whoever is to run the plane makes it his by one pinned
// write, and from then on every write of his barriers carries the condition that
// the row has not moved: so a holder that was paused, cut off or taken for dead
// lands nothing once a successor has claimed. No clock decides anything. A row that
// names another holder is taken over only when both of that holder's scanners are
// proved gone, which an Oracle from outside tells; what cannot be told is never
// taken for gone.
//
// Reading order: acquire.go and judge.go (how it is won), held.go (guard and fence),
// enumerate.go and lane.go (what a holder does with it), release.go, await.go.
//
// It speaks to a ledger.Store and an Oracle, and knows no broker and no actor.
package claim
