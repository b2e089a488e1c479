// Package scanner is the actor of one of the two scanners: the only clients that may
// make consumers, and so the only ones that can enumerate a stream.
//
// A scanner opens as a candidate that does nothing. Its connection never renews and
// never reconnects, because the claim on the plane names it; only when that claim
// was won does it scan, and its death fences the plane.
package scanner
