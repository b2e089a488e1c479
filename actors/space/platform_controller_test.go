package space_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
)

// controllerOf asks as a controller that a platform runs, which made its keys itself.
func controllerOf(t *testing.T, at messages.PlatformPlace, door messages.ControllerDoor, id string) messages.ControllerRequest {
	t.Helper()
	users := make([]string, 5)
	for i := range users {
		pair, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, []byte(strings.Repeat(strconv.Itoa(i), 32)))
		if err != nil {
			t.Fatal(err)
		}
		if users[i], err = pair.PublicKey(); err != nil {
			t.Fatal(err)
		}
	}
	return messages.ControllerRequest{Door: door, Space: "main", Actor: messages.PlatformActor, Endpoint: at.Endpoint, Instance: at.Instance,
		ID:   strings.Repeat(id, 22),
		Keys: messages.ControllerKeys{Supervisor: users[0], Executor: users[1], Server: users[2], Recorder: users[3], Ledger: users[4]}}
}

func TestThePlatformsController(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	ctx := h.Context()
	place := h.assign("billing", instance)
	prepare := controllerOf(t, place, messages.DoorPrepare, "p")
	// The instance is the platform's, and not the one that a controller has.
	if _, err := h.Space.AskPlatformController(ctx, place, prepare); !errors.Is(err, messages.InstanceForeign) {
		t.Errorf("not a controller's: %v", err)
	}
	place = h.assignAs("ctl", others, space.ControllerPrincipal(h.Space.PlatformOwner(), others))
	prepare = controllerOf(t, place, messages.DoorPrepare, "p")
	prepared, err := h.Space.AskPlatformController(ctx, place, prepare)
	h.must(err)
	if len(prepared.Credentials) == 0 || prepared.Principal.Owner != h.Space.PlatformOwner() {
		t.Errorf("prepared %+v", prepared)
	}
	again, err := h.Space.AskPlatformController(ctx, place, prepare)
	if err != nil || again.Credentials[0].JWT != prepared.Credentials[0].JWT {
		t.Errorf("the same question again: %v", err)
	}
	activate := controllerOf(t, place, messages.DoorActivate, "a")
	activate.Commands = []string{"start"}
	activated, err := h.Space.AskPlatformController(ctx, place, activate)
	h.must(err)
	renew := controllerOf(t, place, messages.DoorRenew, "r")
	renew.Receipt = activated.Receipt

	before := h.rows()
	for name, c := range map[string]struct {
		place   func(*messages.PlatformPlace)
		ask     func(*messages.ControllerRequest)
		refusal error
	}{
		"another revision":       {place: func(p *messages.PlatformPlace) { p.Revision++ }, refusal: messages.NotAssigned},
		"another space":          {place: func(p *messages.PlatformPlace) { p.Space = "other" }, refusal: messages.NotAssigned},
		"another instance":       {ask: func(r *messages.ControllerRequest) { r.Instance = instance }, refusal: messages.NotAssigned},
		"another actor":          {ask: func(r *messages.ControllerRequest) { r.Actor = "laptop" }, refusal: messages.ControllerActor},
		"the space of another":   {ask: func(r *messages.ControllerRequest) { r.Space = "other" }, refusal: messages.ControllerSpace},
		"another process":        {ask: func(r *messages.ControllerRequest) { r.Epoch = 1 }, refusal: messages.InstanceSuperseded},
		"a receipt of nobody's":  {ask: func(r *messages.ControllerRequest) { r.Receipt = messages.NewSecret(strings.Repeat("A", 43)) }, refusal: messages.ReceiptInvalid},
		"no receipt":             {ask: func(r *messages.ControllerRequest) { r.Receipt = messages.Secret{} }, refusal: messages.Malformed},
		"a door there is not":    {ask: func(r *messages.ControllerRequest) { r.Door = "open" }, refusal: messages.Malformed},
		"the platform is silent": {place: func(*messages.PlatformPlace) { h.silent(errors.New("down")) }, refusal: messages.PlatformAway},
	} {
		at, r := place, renew
		if c.place != nil {
			c.place(&at)
		}
		if c.ask != nil {
			c.ask(&r)
		}
		got, err := h.Space.AskPlatformController(ctx, at, r)
		if !errors.Is(err, c.refusal) || len(got.Credentials) != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		h.silent(nil)
	}
	if after := h.rows(); !slices.Equal(after, before) {
		t.Errorf("what was refused has written: %q, before %q", after, before)
	}
	if _, err := h.Space.AskPlatformController(ctx, place, renew); err != nil {
		t.Errorf("renewed: %v", err)
	}
	// What is assigned while it is worked on is read again before anything is signed.
	h.mu.Lock()
	h.changesAfter = 2 // the door's read, and the issuer's first
	h.mu.Unlock()
	late := controllerOf(t, place, messages.DoorRenew, "l")
	late.Receipt = activated.Receipt
	if got, err := h.Space.AskPlatformController(ctx, place, late); !errors.Is(err, messages.NotAssigned) || len(got.Credentials) != 0 {
		t.Errorf("assigned to another meanwhile: %+v, %v", got, err)
	}
	if _, err := h.Space.RepairPlatformInstance(ctx, place); !errors.Is(err, messages.NotAssigned) {
		t.Errorf("a repair of what is not assigned: %v", err)
	}
	if _, err := h.Space.EvictPlatformFamily(ctx, place, nil); !errors.Is(err, messages.NotAssigned) {
		t.Errorf("an eviction of what is not assigned: %v", err)
	}
	if _, err := h.Space.AdmitPlatformRun(ctx, place, messages.AdmitRun{Controller: messages.RunController{Endpoint: "ctl", Instance: others}}); !errors.Is(err, messages.NotAssigned) {
		t.Errorf("a run of what is not assigned: %v", err)
	}
}
