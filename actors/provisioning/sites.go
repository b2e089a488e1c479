package provisioning

import (
	"context"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/actors/operations"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Kinds of the calls; the names of their actors begin so.
const (
	Provisioner   = "provisioning"
	Deprovisioner = "deprovisioning"
)

// sites opens a connection a call, each with an actor of its own.
type sites struct {
	calls *operations.Calls
	tree  *supervisor.Tree
}

// Do is what the actor of a call is asked.
type Do struct{}

// done answers Do.
type done struct{}

// Provision and Deprovision are footprint.Sites.
func (s sites) Provision(ctx context.Context, p messages.Provision, do func(context.Context, footprint.Site) error) (bool, error) {
	return s.perform(ctx, Provisioner, broker.Provisioner(p.Footprint), p, do)
}

func (s sites) Deprovision(ctx context.Context, p messages.Provision, do func(context.Context, footprint.Site) error) (bool, error) {
	return s.perform(ctx, Deprovisioner, broker.Deprovisioner(p.Footprint), p, do)
}

func (s sites) perform(ctx context.Context, kind string, role broker.Role, p messages.Provision, do func(context.Context, footprint.Site) error) (bool, error) {
	errand := &errand{worked: make(chan struct{})}
	_, err := operations.Perform[done](ctx, s.calls, s.tree, operations.Job{
		Kind: kind, On: p.Principal.String(), Role: role, Ask: Do{},
		Do: func(ctx context.Context, at operations.Site) (any, error) {
			if !errand.begin(at.Conn) {
				return nil, messages.ServiceClosing
			}
			defer close(errand.worked)
			return done{}, do(ctx, site{at.Conn.NATS(), p.UID})
		},
	})
	return errand.end(), err
}

// errand is one use of a connection, which the caller may leave before it is over: when
// the space closes, the call ends on its own.
type errand struct {
	mu     sync.Mutex
	conn   *broker.Conn // nil before it began
	over   bool
	worked chan struct{} // closed when it has returned
}

func (e *errand) begin(conn *broker.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return false
	}
	e.conn = conn
	return true
}

// end waits until nothing is done any more, and reports whether nothing of the
// connection is left.
func (e *errand) end() bool {
	e.mu.Lock()
	e.over = true
	conn := e.conn
	e.mu.Unlock()
	if conn == nil {
		return true
	}
	<-e.worked
	select {
	case <-conn.Ended():
		return true
	default:
		return false
	}
}
