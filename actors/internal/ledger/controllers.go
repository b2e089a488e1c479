package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// ReserveController asks for a request of a controller to be remembered.
type ReserveController struct {
	Endpoint, Instance string
	Epoch              uint64
	// Keys are whose program asks. The first that prepares as the process is the process.
	Keys messages.ControllerKeys
	// Commands are what an activation is for, sorted; other doors have none.
	Commands []string
	// Request is what is remembered, unless one of that id is already.
	Request ControllerRequest
}

// Controllers remembers what controllers ask for. It is safe for concurrent use, also by
// several processes.
type Controllers struct {
	store *Store
	now   func() time.Time
	newID func() string
}

// NewControllers writes to store. Of options it takes the clock and NewUID.
func NewControllers(store *Store, options Options) *Controllers {
	of := NewIssuer(store, options)
	return &Controllers{store: store, now: of.now, newID: of.newID}
}

// Reserve remembers a request before anything is issued for it, and returns it with what
// is known of its controller. The same request asked again is returned as it was
// remembered. What nobody needs to know any more is forgotten with each write.
//
// Refused, with nothing written, with messages.InstanceSuperseded when a newer process
// prepared, ControllerTaken when another program is the process, ControllerUnprepared
// when the process has not come by the doors that come before, ControllerRequestConflict
// when the id names another request, and ControllerRequests when there are too many. It
// may also fail with messages.Contended, BrokerAway, RowCorrupt and OutcomeUnknown.
func (c *Controllers) Reserve(ctx context.Context, ask ReserveController) (known Controller, request ControllerRequest, err error) {
	err = c.store.decide(ctx, func(ctx context.Context) (err error) {
		known, request, err = c.attempt(ctx, ask)
		return err
	})
	if err != nil {
		return Controller{}, ControllerRequest{}, fmt.Errorf("remember request %s of %s of %s: %w", ask.Request.ID, ask.Instance, ask.Endpoint, err)
	}
	return known, request, nil
}

func (c *Controllers) attempt(ctx context.Context, ask ReserveController) (Controller, ControllerRequest, error) {
	row, known, err := c.read(ctx, ask)
	if err == nil {
		err = known.take(ask)
	}
	if err != nil {
		return known, ControllerRequest{}, err
	}
	now := c.now()
	known.Requests = slices.DeleteFunc(known.Requests, func(r ControllerRequest) bool { return !r.Forget.After(now) })
	if i := slices.IndexFunc(known.Requests, func(r ControllerRequest) bool { return r.ID == ask.Request.ID }); i >= 0 {
		if known.Requests[i].Digest != ask.Request.Digest {
			return known, ControllerRequest{}, messages.ControllerRequestConflict
		}
		return known, known.Requests[i], nil
	}
	if len(known.Requests) >= MaxRequests {
		return known, ControllerRequest{}, messages.ControllerRequests
	}
	known.Requests = append(known.Requests, ask.Request)
	value, err := EncodeController(known, c.newID())
	if err != nil {
		return known, ControllerRequest{}, err
	}
	_, err = c.store.Apply(ctx, Batch{Writes: []Write{Replace(row, value)}, Witness: row.Key})
	return known, ask.Request, err
}

// Recognize refuses a program that is not the process of an instance which has prepared,
// with these keys, and activated: as Reserve does at the doors that come after. It writes
// nothing.
func (c *Controllers) Recognize(ctx context.Context, endpoint, instance string, epoch uint64, keys messages.ControllerKeys) error {
	ask := ReserveController{Endpoint: endpoint, Instance: instance, Epoch: epoch, Keys: keys, Request: ControllerRequest{Door: messages.DoorRenew}}
	_, known, err := c.read(ctx, ask)
	if err == nil {
		err = known.take(ask)
	}
	if err != nil {
		return fmt.Errorf("recognize %s of %s: %w", instance, endpoint, err)
	}
	return nil
}

// read reads what is known of a controller: nothing, where its process has not come yet.
func (c *Controllers) read(ctx context.Context, ask ReserveController) (Row, Controller, error) {
	fresh := Controller{Endpoint: ask.Endpoint, Instance: ask.Instance, Epoch: ask.Epoch, Keys: ask.Keys}
	row, found, err := c.store.Get(ctx, ControllerKey(ask.Endpoint, ask.Instance))
	if err != nil {
		return row, fresh, err
	}
	unprepared := ask.Request.Door != messages.DoorPrepare
	if !found {
		row.Key = ControllerKey(ask.Endpoint, ask.Instance)
		return row, fresh, unless(!unprepared, messages.ControllerUnprepared)
	}
	known, err := DecodeController(row)
	switch {
	case err != nil:
		return row, known, err
	case known.Epoch > ask.Epoch:
		return row, known, messages.InstanceSuperseded.Because("this is process %d, and %d has come", ask.Epoch, known.Epoch)
	case known.Epoch < ask.Epoch:
		return row, fresh, unless(!unprepared, messages.ControllerUnprepared)
	}
	return row, known, nil
}

func unless(holds bool, refusal error) error {
	if holds {
		return nil
	}
	return refusal
}

// take refuses a program that is not the process, or comes too early, and notes what it
// activates.
func (c *Controller) take(ask ReserveController) error {
	switch {
	case c.Keys != ask.Keys:
		return messages.ControllerTaken
	case ask.Request.Door == messages.DoorPrepare:
	case ask.Request.Door == messages.DoorActivate:
		if len(c.Commands) > 0 && !slices.Equal(c.Commands, ask.Commands) {
			return messages.ControllerTaken
		}
		c.Commands = slices.Clone(ask.Commands)
	case len(c.Commands) == 0:
		return messages.ControllerUnprepared
	}
	return nil
}

// List tells which instances are run by controllers. Rows that are corrupt keep nobody
// from the others: they are named.
func (c *Controllers) List(ctx context.Context) (messages.Controllers, error) {
	if err := c.store.Sync(ctx); err != nil {
		return messages.Controllers{}, err
	}
	keys, err := c.store.List(ctx, AllControllers)
	if err != nil {
		return messages.Controllers{}, err
	}
	known, unreadable, err := readEach(ctx, c.store, keys, DecodeController)
	if err != nil {
		return messages.Controllers{}, err
	}
	all := messages.Controllers{Unreadable: CorruptKeys(unreadable)}
	slices.SortFunc(known, func(a, b Controller) int {
		return slices.Compare([]string{a.Endpoint, a.Instance}, []string{b.Endpoint, b.Instance})
	})
	for _, one := range known {
		shown, err := c.show(ctx, one)
		if errors.Is(err, messages.RowCorrupt) {
			all.Unreadable = append(all.Unreadable, CorruptKeys(err)...)
			continue
		}
		if err != nil {
			return messages.Controllers{}, err
		}
		all.Items = append(all.Items, shown)
	}
	return all, nil
}

// show reads the gate and the credentials of one instance.
func (c *Controllers) show(ctx context.Context, of Controller) (messages.Controller, error) {
	gate, err := NewReader(c.store, nil).Instance(ctx, messages.ReadInstance{Endpoint: of.Endpoint, Instance: of.Instance})
	if err != nil {
		return messages.Controller{}, err
	}
	family, err := Family(ctx, c.store, of.Endpoint, of.Instance)
	if err != nil {
		return messages.Controller{}, err
	}
	shown := messages.Controller{Endpoint: of.Endpoint, Instance: of.Instance, Principal: gate.Principal, State: gate.State,
		Epoch: gate.Epoch, Prepared: of.Epoch, Activated: len(of.Commands) > 0}
	now := c.now()
	for _, credential := range family {
		if credential.State != CredentialActive || !credential.Expires.After(now) {
			continue
		}
		shown.Live++
		if shown.Expires.IsZero() || credential.Expires.Before(shown.Expires) {
			shown.Expires = credential.Expires
		}
	}
	return shown, nil
}

// Family reads every credential that was ever issued to an instance, by id. A row that
// is corrupt fails it.
func Family(ctx context.Context, source Source, endpoint, instance string) ([]InstanceCredential, error) {
	keys, err := source.List(ctx, InstanceCredentialsOf(endpoint, instance))
	if err != nil {
		return nil, err
	}
	family, unreadable, err := readEach(ctx, source, keys, DecodeInstanceCredential)
	if err == nil {
		err = unreadable
	}
	return family, err
}
