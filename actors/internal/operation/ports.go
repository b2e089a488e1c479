package operation

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Ports are what it takes to run an operation. All but Drainer and Tell are needed.
type Ports struct {
	// Records reads what is recorded, and says what is to be written.
	Records *ledger.Barrier
	// Lane is where the holder of the plane writes.
	Lane ledger.Lane
	// Scanner enumerates as the holder of the plane: guarded before and after.
	Scanner   ledger.Scanner
	Evictor   Evictor
	Frontiers Frontiers
	// Drainer is nil where no service accepts work.
	Drainer Drainer
	// Tell hears how far it is, each time that something changes. It must not block.
	Tell func(messages.OperationProgress)
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Evictor proves that nobody is connected.
type Evictor interface {
	// Evict returns once nobody of the operation's incarnation is connected any more and
	// nobody can come who was admitted before denied, when its gate was shut at the
	// latest. It fails with messages.EvictionUnproved while that is not proved.
	Evict(ctx context.Context, op messages.Operation, denied time.Time) (Evicted, error)
}

// Evicted is what an eviction proved.
type Evicted struct {
	// Kicked counts the connections that were dropped.
	Kicked int
	// Vacuous says that there was none from the start.
	Vacuous bool
	How     messages.Eviction
	// Servers are the names of those that listed everything without a trace.
	Servers []string
}

// Drainer ends the work that services have accepted for a principal.
type Drainer interface {
	// Drain has it ended. It may be called again for the same operation.
	Drain(ctx context.Context, op messages.Operation) error
	// Left reads anew what is left and names each. Only what it reads counts: a drain
	// that says it is done is not believed.
	Left(ctx context.Context, op messages.Operation) ([]string, error)
}

// Frontiers tells where streams end.
type Frontiers interface {
	// Frontiers are the last sequences of the streams that principals' work stands in.
	Frontiers(ctx context.Context) (map[string]uint64, error)
}
