package face

import (
	"context"
	"net/http"

	"github.com/cotal-ai/authplane/messages"
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
	c.json(http.StatusOK, struct {
		instanceView
		Revoked int `json:"revoked"`
	}{viewInstance(opened.Instance), opened.Revoked})
	return nil
}
