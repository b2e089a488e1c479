package messages

import "time"

// SpaceState says what a space can do for its users.
type SpaceState string

const (
	// SpaceStarting is a space whose children are opening.
	SpaceStarting SpaceState = "starting"
	// SpaceReady answers connects and exchanges.
	SpaceReady SpaceState = "ready"
	// SpaceDraining is closing: it admits nothing new.
	SpaceDraining SpaceState = "draining"
	// SpaceUnavailable cannot serve, and says why in its cause.
	SpaceUnavailable SpaceState = "unavailable"
	// SpaceClosed has ended, with every connection it ever opened.
	SpaceClosed SpaceState = "closed"
)

// Status is what a space says of itself.
type Status struct {
	Space string     `json:"space"`
	State SpaceState `json:"state"`
	// Cause says why the state is unavailable; empty otherwise.
	Cause string `json:"cause"`
	// Since is when the state was entered.
	Since time.Time `json:"since"`
	// Plane says who runs the plane, and what this process waits for if it does not.
	Plane PlaneStatus `json:"plane"`
	// Problems are what somebody should look after although the space can serve, one
	// line each; empty for none.
	Problems []string `json:"problems"`
}

// GetStatus asks a space, at Handle.PID, how it is. Answered by Status.
type GetStatus struct{}

// GetTree asks a space, at Handle.PID, for its actors. Answered by Tree.
type GetTree struct{}

// Tree answers GetTree, in open order.
type Tree struct{ Actors []Actor }

// Actor is one line of the tree as an operator sees it.
type Actor struct {
	Path string `json:"path"`
	// Group says that it is only the place of others, and has no life of its own.
	Group      bool   `json:"group,omitempty"`
	State      string `json:"state"`
	Generation uint64 `json:"generation"`
	Restarts   uint64 `json:"restarts"`
	Label      string `json:"label"`
	LastError  string `json:"last_error"`
}

// Connection is one connection this process opened, whether or not it still lives.
type Connection struct {
	Label string `json:"label"`
	Ended bool   `json:"ended"`
}

// Event is something that happened in the tree, for whoever follows it.
type Event struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	Path string    `json:"path"`
	Text string    `json:"text"`
}
