// Package claim is the actor that holds the plane for this process, or waits to.
//
// It is open from the start, whoever holds the plane, and keeps nothing from
// opening after it. Once both scanners stand as candidates it claims; when it has
// won it makes them active, kicks what it superseded, and guards the claim at each
// nudge and every few seconds. When the claim is lost it has its group fenced: the scanners and this actor
// are closed and opened anew, and the claim is taken again.
package claim
