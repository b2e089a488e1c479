// Package ledger is the memory of authplane: which principals are granted what,
// which incarnation of each is current, and how one record follows another.
//
// Everything lives in one stream per space, a row a key, and a transition over
// several rows is one atomic batch: it happened whole or it did not happen. Every
// write is pinned to what was read, so nobody overwrites what he has not seen, and
// no outcome is guessed: a write whose answer was lost is repeated until the
// answer is definite.
//
// Reading order: keys.go and the row_*.go files (what is written), store.go and
// apply.go (how), reader.go and owing.go (what a decision reads), writer.go with put.go,
// edit.go, enrol.go, mint.go, redeem.go, revoke.go, asked.go and roster.go (what may
// follow what), step.go with barrier.go, begin.go, family.go and commit.go (what only
// the holder of the plane writes), invariants.go (what always holds).
//
// Its values are those of package messages; the wire form of a row is known here
// and nowhere else. It knows no actor and no broker: a Backend comes in from
// outside, package memory or package stream, and passes the tests of package
// contract. Time and randomness come in through Options.
package ledger
