package face

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// registerWithin is more than a registration takes, whatever becomes of it.
	registerWithin = time.Minute
	// maxEpoch is the highest that every reader of JSON reads as it is written.
	maxEpoch = 1<<53 - 1
)

// instanceView is the gate of an instance as an operator sees it.
type instanceView struct {
	Endpoint string                 `json:"endpoint"`
	Instance string                 `json:"instance"`
	State    messages.InstanceState `json:"state"`
	// Epoch counts the processes of the instance, from 0.
	Epoch      uint64 `json:"epoch"`
	Generation uint64 `json:"generation"`
	Owner      string `json:"owner"`
	Actor      string `json:"actor"`
	// HeldBy is the registration that holds the gate; empty for an open one.
	HeldBy string `json:"held_by"`
}

func viewInstance(i messages.Instance) instanceView {
	return instanceView{Endpoint: i.Endpoint, Instance: i.Name, State: i.State, Epoch: i.Epoch, Generation: i.Generation,
		Owner: i.Principal.Owner, Actor: i.Principal.Actor, HeldBy: i.Operation.ID}
}

// listInstances answers GET /v1/instances and GET /v1/instances/{endpoint}. Gates
// whose rows cannot be read are named, and hide no other.
func (f *Face) listInstances(ctx context.Context, c *call) error {
	all, err := f.instances.Instances(ctx, messages.ListInstances{Endpoint: c.parts["endpoint"]})
	if err != nil {
		return err
	}
	views := make([]instanceView, len(all.Items))
	for i, instance := range all.Items {
		views[i] = viewInstance(instance)
	}
	c.json(http.StatusOK, map[string]any{"instances": views, "unreadable": listed(all.Unreadable)})
	return nil
}

// repair answers POST /v1/repair with the gate that it opened.
func (f *Face) repair(ctx context.Context, c *call) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	endpoint, instance := in.text("endpoint"), in.text("instance")
	if err := in.done(); err != nil {
		return err
	}
	opened, err := f.instances.RepairInstance(ctx, endpoint, instance)
	if err != nil {
		return err
	}
	c.json(http.StatusOK, viewRegistered(opened))
	return nil
}

// registeredView is a gate that was opened, and how many credentials of former processes
// were revoked for it.
type registeredView struct {
	instanceView
	Revoked int `json:"revoked"`
}

func viewRegistered(r messages.InstanceRegistered) registeredView {
	return registeredView{viewInstance(r.Instance), r.Revoked}
}

// registerInstance answers POST /v1/instances: when it does, nothing is left of the
// process before. That takes a while, so it is worked on beside what takes turns.
func (f *Face) registerInstance(ctx context.Context, c *call) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	endpoint, instance := in.text("endpoint"), in.text("instance")
	principal := messages.Principal{Owner: in.text("owner"), Actor: in.text("actor")}
	if err := in.done(); err != nil {
		return err
	}
	if err := names.CheckPrincipal(principal); err != nil {
		return err
	}
	c.about = principal
	c.yield()
	c.answersWithin(MaxWait + registerWithin)
	done, err := f.registering.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	registered, err := f.instances.RegisterHostInstance(ctx, endpoint, instance, principal)
	if err != nil {
		return err
	}
	c.json(http.StatusOK, viewRegistered(registered))
	return nil
}

// processCredential is a bearer of one process of an instance, and whose connections it
// lets in. Expires is RFC 3339, UTC, in whole seconds.
type processCredential struct {
	Token        string `json:"token"`
	CredentialID string `json:"credential_id"`
	Owner        string `json:"owner"`
	Actor        string `json:"actor"`
	ExpiresAt    string `json:"expires_at"`
}

// issueToInstance answers POST /v1/instances/{endpoint}/{instance}/credential.
func (f *Face) issueToInstance(ctx context.Context, c *call) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	hasEpoch := in.has("epoch")
	epoch := in.integer("epoch", 0, maxEpoch, 0)
	life := time.Duration(in.integer("ttl_seconds", 1, int64(MaxLife/time.Second), 0)) * time.Second
	if err := in.done(); err != nil {
		return err
	}
	if !hasEpoch {
		return messages.Malformed.Because("epoch is missing")
	}
	issued, err := f.instances.IssueInstanceCredential(ctx, c.parts["endpoint"], c.parts["instance"], uint64(epoch), life)
	if err != nil {
		return err
	}
	holder := issued.Instance.Principal
	c.json(http.StatusOK, processCredential{Token: issued.Bearer.Reveal(), CredentialID: issued.CredentialID,
		Owner: holder.Owner, Actor: holder.Actor, ExpiresAt: atSecond(issued.Expires)})
	return nil
}

// gateView is a gate, and what it says of the process of an epoch, if one was asked about.
type gateView struct {
	instanceView
	// Fenced is true when that process counts no more.
	Fenced *bool `json:"fenced,omitempty"`
}

// showInstance answers GET /v1/instances/{endpoint}/{instance}: at once, or with epoch
// and wait when the process of that epoch is fenced, and after the wait at the latest. A
// process that is fenced already is told so at once.
func (f *Face) showInstance(ctx context.Context, c *call) error {
	epoch, wait, err := c.fenceQuery()
	if err != nil {
		return err
	}
	gate, err := f.instances.ObserveGate(ctx, c.parts["endpoint"], c.parts["instance"])
	if err == nil && wait > 0 && !fences(gate, *epoch) {
		gate, err = f.awaitFence(ctx, c, *epoch, wait)
	}
	if err != nil {
		return err
	}
	view := gateView{instanceView: viewInstance(gate)}
	if epoch != nil {
		fenced := fences(gate, *epoch)
		view.Fenced = &fenced
	}
	c.json(http.StatusOK, view)
	return nil
}

// fenceQuery reads which process is asked about, nil for none, and how long the caller
// waits for its fence.
func (c *call) fenceQuery() (*uint64, time.Duration, error) {
	given, err := c.query("epoch", "wait")
	if err != nil {
		return nil, 0, err
	}
	epoch, err := epochIn(given)
	if err != nil {
		return nil, 0, err
	}
	if epoch == nil && given.Has("wait") {
		return nil, 0, messages.Malformed.Because("wait needs epoch, the process whose fence is waited for")
	}
	wait, err := waitIn(given, 0)
	return epoch, wait, err
}

func epochIn(given url.Values) (*uint64, error) {
	if !given.Has("epoch") {
		return nil, nil
	}
	epoch, is := whole(given.Get("epoch"), maxEpoch)
	if !is {
		return nil, messages.Malformed.Because("epoch is a whole number")
	}
	return &epoch, nil
}

// fences reports whether a gate is that of another process than the one of the epoch, or
// will be.
func fences(gate messages.Instance, epoch uint64) bool {
	return gate.State != messages.InstanceOpen || gate.Epoch != epoch
}

// awaitFence waits, with no turn, and tells the gate that it came to: as it is at the end
// of the wait, where nothing came of that.
func (f *Face) awaitFence(ctx context.Context, c *call, epoch uint64, wait time.Duration) (messages.Instance, error) {
	endpoint, instance := c.parts["endpoint"], c.parts["instance"]
	select {
	case f.fences <- struct{}{}:
		defer func() { <-f.fences }()
	default:
		return messages.Instance{}, messages.Busy.Because("%d wait for a fence", MaxFences)
	}
	c.yield()
	c.answersWithin(wait + MaxWait)
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer context.AfterFunc(f.draining, cancel)()
	gate, err := f.instances.AwaitFence(waiting, endpoint, instance, epoch)
	switch {
	case err == nil && gate.Endpoint == "":
		return gate, messages.InstanceNotFound
	case err == nil:
		return gate, nil
	case ctx.Err() != nil:
		return gate, context.Cause(ctx)
	case f.draining.Err() != nil:
		return gate, messages.ServiceClosing
	case waiting.Err() == nil:
		return gate, err
	}
	if err := c.takeTurn(ctx); err != nil {
		return gate, err
	}
	return f.instances.ObserveGate(ctx, endpoint, instance)
}
