// Package barrier is the actor whose connection may write what only the holder of
// the plane may: the claim itself, and the steps of takeovers and retirements.
//
// It decides nothing. Whoever holds the plane writes through Over, which outlives
// the actor's lives: a write whose answer died with one is repeated through the
// next, with the same pins.
package barrier
