package supervisor

// How says in which way Kill ends a life.
type How uint8

const (
	// Panic makes the actor panic in its next Receive.
	Panic How = iota
	// Stop stops the actor behind the kit's back, as any holder of its PID could.
	Stop
	// Disconnect severs the resources that the life holds. It is up to the leaf to
	// notice and to die of it.
	Disconnect
)

func (h How) String() string {
	switch h {
	case Panic:
		return "panic"
	case Stop:
		return "stop"
	case Disconnect:
		return "disconnect"
	}
	return "unknown"
}

// Killed says which life was aimed at.
type Killed struct {
	Path       string
	Generation uint64
}
