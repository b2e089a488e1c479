package space

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/hosting"
	"github.com/cotal-ai/authplane/actors/provisioning"
	"github.com/cotal-ai/authplane/actors/runs"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// eventBuffer is how many events one follower may lag behind before it loses the
// oldest; it is told how many.
const eventBuffer = 256

// Handle is an open space. It is safe for concurrent use.
type Handle struct {
	config  Config
	parts   *parts
	metrics *metrics
	// tree is nil while the space opens; the loopback face may ask by then.
	tree  atomic.Pointer[supervisor.Tree]
	door  *actor.PID
	hosts *hosting.Hosts
	runs  *runs.Runs
	// provisioning is there before the tree is.
	provisioning *provisioning.Provisioning
	// closing is closed when Close is first called, and closed when all has ended.
	closing chan struct{}
	close   sync.Once
	closed  chan struct{}
}

// Status tells what the space can do for its users, and why not.
func (h *Handle) Status() messages.Status {
	status := messages.Status{Space: h.config.Space, State: messages.SpaceStarting}
	if tree := h.tree.Load(); tree != nil {
		status = statusOf(h.config.Space, tree)
	}
	status.Plane = h.parts.view.Status()
	status.Problems = append(h.parts.unreadable.Problems(), h.parts.troubles.Problems()...)
	status.Problems = append(status.Problems, h.parts.readiness.Problems()...)
	status.Problems = append(status.Problems, h.provisioning.Problems()...)
	return status
}

// Tree lists every actor, in open order.
func (h *Handle) Tree() []messages.Actor {
	tree := h.tree.Load()
	if tree == nil {
		return nil
	}
	return actorsOf(tree.Snapshot())
}

// Connections lists the connections of this space, and of those that ended the last
// that each actor had under a label.
func (h *Handle) Connections() []messages.Connection {
	tree := h.tree.Load()
	if tree == nil {
		return nil
	}
	return connectionsOf(tree.Custody().Holdings())
}

// URL is the loopback face's address.
func (h *Handle) URL() string { return h.parts.loopback.URL() }

// PublicURL is how the public face is reached from outside; empty without one.
func (h *Handle) PublicURL() string { return h.parts.publicURL() }

// CapabilityFile is the path of the file that lets its readers call the loopback face.
func (h *Handle) CapabilityFile() string { return h.parts.state.file(capabilityFile) }

// PID is the space as an actor of the caller's system: it answers GetStatus and
// GetTree, and whoever watches it sees it stop when the space has closed.
func (h *Handle) PID() *actor.PID { return h.door }

// Failed is closed when the space has given up; Err then tells why.
func (h *Handle) Failed() <-chan struct{} { return h.tree.Load().Failed() }

// Err is the cause of Failed, or nil.
func (h *Handle) Err() error { return h.tree.Load().Err() }

// Close ends the space in order: admission, plane, responders, and whatever custody
// still lists; when it returns nil, everything is given back, the state directory
// included. Concurrent calls share one flight. An error says, for every part
// that did not end, which and why; calling again goes on with what is left.
func (h *Handle) Close(ctx context.Context) error {
	h.close.Do(func() { close(h.closing) })
	if err := h.tree.Load().Close(ctx); err != nil {
		return fmt.Errorf("close space %s: %w", h.config.Space, err)
	}
	select {
	case <-h.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close space %s: connections have not ended: %w", h.config.Space, context.Cause(ctx))
	}
}

// Closed is closed when the space has closed and every connection it ever opened
// has really ended.
func (h *Handle) Closed() <-chan struct{} { return h.closed }

// Denials lists the connects that were not admitted, newest first, at most 1,000.
func (h *Handle) Denials(context.Context) ([]messages.Denial, error) {
	return h.parts.denials.List(), nil
}

// Events yields what happens in the tree from now on. The channel is closed when
// ctx ends or the space has closed. A follower that lags loses the oldest events
// and gets one that says how many.
func (h *Handle) Events(ctx context.Context) <-chan messages.Event {
	out := make(chan messages.Event) // unbuffered: the subscription is the buffer
	tree := h.tree.Load()
	if tree == nil {
		close(out)
		return out
	}
	subscription := tree.Events(eventBuffer)
	go func() { // ends with ctx or with the subscription, whichever is first
		defer close(out)
		defer subscription.Close()
		for event := range subscription.All(ctx) {
			select {
			case out <- eventOf(event):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func eventOf(e supervisor.Event) messages.Event {
	origin := e.Where()
	kind := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "supervisor."))
	return messages.Event{At: origin.At, Kind: kind, Path: origin.Path, Text: e.String()}
}

// Kill ends the life of the actor at path, by `panic`, `stop` or `disconnect`, and
// tells which generation it was. It is refused with NoSuchActor for an unknown
// path and with KillInapplicable where that way does not apply.
func (h *Handle) Kill(_ context.Context, path, how string) (string, uint64, error) {
	ways := map[string]supervisor.How{"panic": supervisor.Panic, "stop": supervisor.Stop, "disconnect": supervisor.Disconnect}
	way, known := ways[how]
	if !known {
		return "", 0, messages.Malformed.Because("how is none of panic, stop, disconnect")
	}
	tree := h.tree.Load()
	if tree == nil {
		return "", 0, messages.KillInapplicable.Because("the space is opening")
	}
	killed, err := tree.Kill(path, way)
	if err != nil {
		return "", 0, killRefusal(err)
	}
	return killed.Path, killed.Generation, nil
}

func killRefusal(err error) error {
	switch {
	case errors.Is(err, supervisor.ErrNoSuchActor):
		return messages.NoSuchActor.From(err)
	case errors.Is(err, supervisor.ErrNotApplicable):
		return messages.KillInapplicable.From(err)
	}
	return err
}
