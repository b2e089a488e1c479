package provisioning

import (
	"context"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/actors/operations"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// connectionLives is how long a connection for one call may act: what its JWT runs.
const connectionLives = time.Minute

// Config is what provisioning needs of its space.
type Config struct {
	Calls *operations.Calls
	Space string
	// Footprint is what every machine gets; it passed footprint.Check.
	Footprint messages.Footprint
	// Reader and Writer are the paths of the actors that are asked.
	Reader, Writer string
	// Retirements is the path of the group whose children end incarnations.
	Retirements string
	// Holder tells whether this process holds the plane, and since which claim.
	Holder func() (generation uint64, holds bool)
	// Lives is how long a connection may act; 0 is a minute, as the broker has it.
	Lives time.Duration
}

// Provisioning provisions the machines of one space, over all lives of its actors.
type Provisioning struct {
	config   Config
	troubles troubles
	// look is told when there may be something to settle; one word is enough.
	look chan struct{}

	once  sync.Once
	sagas *footprint.Sagas
}

// New takes what provisioning needs.
func New(config Config) *Provisioning {
	if config.Lives == 0 {
		config.Lives = connectionLives
	}
	return &Provisioning{config: config, look: make(chan struct{}, 1)}
}

// over are the sagas, which are the same for whoever asks: callers and the sweeper take
// turns at a principal.
func (p *Provisioning) over(tree *supervisor.Tree) *footprint.Sagas {
	p.once.Do(func() {
		p.sagas = footprint.New(footprint.Config{
			Space: p.config.Space, Footprint: p.config.Footprint, Lives: p.config.Lives,
			Journal: journal{tree, p.config.Reader, p.config.Writer},
			Sites:   sites{p.config.Calls, tree},
		})
	})
	return p.sagas
}

// Enrol enrols a machine, as messages.EnrolMachine says but for the address of the
// exchange. Besides it fails as operations.Perform does.
func (p *Provisioning) Enrol(ctx context.Context, tree *supervisor.Tree, ask messages.EnrolMachine) (messages.MachineEnrolled, error) {
	defer p.Look() // at what it left, and at what could not be settled beside it
	return p.over(tree).Enrol(ctx, ask)
}

// Find tells what was enrolled with a secret; see footprint.Sagas.Find.
func (p *Provisioning) Find(ctx context.Context, tree *supervisor.Tree, tokenHash string) (messages.MachineEnrolled, error) {
	return p.over(tree).Find(ctx, tokenHash)
}

// Look has the sweeper look soon.
func (p *Provisioning) Look() {
	select {
	case p.look <- struct{}{}:
	default: // it was told already
	}
}

// Problems says in words which footprints could not be settled, empty for none.
func (p *Provisioning) Problems() []string { return p.troubles.list() }
