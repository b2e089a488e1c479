package retirement

import (
	"time"

	"github.com/cotal-ai/authplane/actors/internal/operation"
	"github.com/cotal-ai/authplane/supervisor"
)

// Names of the children that are always there; the others are named like their
// operations.
const (
	Name    = "retirement"
	desk    = "desk"
	sweeper = "sweeper"
)

// DeskOf and the like are the paths below the group's.
func DeskOf(group string) string { return group + "/" + desk }

func sweeperOf(group string) string { return group + "/" + sweeper }

// Config is what the group needs.
type Config struct {
	// Path is the group's own; the others are of the actors that are asked.
	Path                                                               string
	Barrier, Claim, Writer, Observer, Evictor, LedgerScanner, Presence string
	// Instance is this process's, under which it asks.
	Instance string
	// CalloutUsers are the public keys of the users that may answer connects.
	CalloutUsers []string
	// Outlives is the longest life of a connection where the servers cannot be asked who
	// is connected: then an eviction waits for that long after the freeze, and Observer
	// and Evictor are not asked. 0 where they can be.
	Outlives time.Duration
	// Troubles shows what does not get on.
	Troubles *Troubles
	// Drainer ends the work that services accepted; nil is for spaces without any.
	Drainer operation.Drainer

	// coming tells the sweeper whom it will be asked for soon.
	coming *coming
}

// Spec describes the group as a child of the plane.
func Spec(c Config) supervisor.Spec {
	c.coming = newComing(time.Now)
	return supervisor.Spec{Name: Name, Group: &supervisor.Group{
		Children: []supervisor.Spec{sweeperSpec(c), deskSpec(c)},
		Dynamic:  true,
	}}
}
