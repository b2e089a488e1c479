// Package grants holds the rules of what may be granted: the grammar of an
// allowance, which pattern lies inside which, and whether a grant stays inside
// the whole chain of its parents.
//
// Allowances and grants come in, errors of the catalogue go out. Every function
// is pure and bounded by the limits below, so that the same rule is asked when a
// grant is written, at a machine's exchange and at a connect. It knows no broker,
// no clock and no actor.
//
// Reading order: patterns.go (one pattern), allowance.go (one grant), chain.go
// (a grant and its parents).
package grants
