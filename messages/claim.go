package messages

import "time"

// GetConnection asks a scanner which connection it works on. Answered by
// ConnectionTuple.
type GetConnection struct{}

// ActivateScanner tells a scanner that the claim which names its connection was
// won: from now on it scans for that claim, and for no other. It is not answered.
type ActivateScanner struct{ ClaimID string }

// PlaneChanged tells the claim's actor that the record of the plane may have been
// written. It is a nudge, never evidence, and is not answered.
type PlaneChanged struct{}

// PlaneState says how a process stands to the plane of its space.
type PlaneState string

const (
	// PlaneOpening is a plane whose clients open.
	PlaneOpening PlaneState = "opening"
	// PlaneActive is a process that holds the plane.
	PlaneActive PlaneState = "active"
	// PlaneStandby is a process that waits to hold it.
	PlaneStandby PlaneState = "standby"
	// PlaneFenced is a process that held it, lost the use of it, and heals.
	PlaneFenced PlaneState = "fenced"
	// PlaneClosed is a process that gave it back.
	PlaneClosed PlaneState = "closed"
)

// PlaneStatus is what an operator sees of the plane from one process.
type PlaneStatus struct {
	State PlaneState `json:"state"`
	// HeldByUs says that this process holds the plane.
	HeldByUs bool `json:"held_by_us"`
	// Holder is the instance that holds it as far as this process knows; empty when
	// nobody is known to.
	Holder     string `json:"holder"`
	Generation uint64 `json:"generation"`
	// Since is when the state was entered.
	Since time.Time `json:"since"`
	// WaitingFor says what a standby waits for, or why the plane was fenced.
	WaitingFor string `json:"waiting_for"`
	// Next is the command that leads on.
	Next string `json:"next"`
}
