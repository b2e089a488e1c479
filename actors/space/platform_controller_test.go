package space_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/runrequest"
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
	h.runsOfThePlatform(place, renew)
	// What is assigned while it is worked on is read again before anything is signed.
	h.changes(2) // the door's read, and the issuer's first
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

// runsOfThePlatform asks about runs as the platform's controller, which shows its receipt
// there as at every other door: one with it hears about the run, and any other one only of
// itself.
func (h *host) runsOfThePlatform(place messages.PlatformPlace, shown messages.ControllerRequest) {
	h.Helper()
	subject := runrequest.Subject{Endpoint: place.Endpoint, Instance: runrequest.Any, Command: runrequest.Start, UID: strings.Repeat("u", 26),
		Nonce: runrequest.NewNonce(), Caller: messages.Principal{Owner: h.Space.PlatformOwner(), Actor: "laptop"}}
	payload, err := runrequest.Body{}.Encode()
	h.must(err)
	whole := messages.RunController{Endpoint: place.Endpoint, Instance: place.Instance, Space: "main", Actor: messages.PlatformActor, Keys: shown.Keys, Receipt: shown.Receipt}
	driver, err := nkeys.CreateUser()
	h.must(err)
	mediator, err := nkeys.CreateUser()
	h.must(err)
	d, _ := driver.PublicKey()
	m, _ := mediator.PublicKey()
	before := h.rows()
	for name, c := range map[string]struct {
		place          func(*messages.PlatformPlace)
		change         func(*messages.RunController)
		admit, attempt error
	}{
		// Its caller has no grant, and so the run is not admitted.
		"the one":              {admit: messages.NotGranted, attempt: messages.RunNotAdmitted},
		"as another":           {change: func(c *messages.RunController) { c.Principal.Owner = "local" }, admit: messages.NotGranted, attempt: messages.RunNotAdmitted},
		"no receipt":           {change: func(c *messages.RunController) { c.Receipt = messages.Secret{} }, admit: messages.Malformed, attempt: messages.Malformed},
		"a forged receipt":     {change: func(c *messages.RunController) { c.Receipt = messages.NewSecret(strings.Repeat("0", 64)) }, admit: messages.ReceiptInvalid, attempt: messages.ReceiptInvalid},
		"one key twice":        {change: func(c *messages.RunController) { c.Keys.Server = c.Keys.Ledger }, admit: messages.Malformed, attempt: messages.Malformed},
		"another process":      {change: func(c *messages.RunController) { c.Epoch = 1 }, admit: messages.InstanceSuperseded, attempt: messages.InstanceSuperseded},
		"a person's actor":     {change: func(c *messages.RunController) { c.Actor = "laptop" }, admit: messages.ControllerActor, attempt: messages.ControllerActor},
		"another instance":     {change: func(c *messages.RunController) { c.Instance = instance }, admit: messages.NotAssigned, attempt: messages.NotAssigned},
		"another assignment":   {place: func(p *messages.PlatformPlace) { p.Revision++ }, admit: messages.NotAssigned, attempt: messages.NotAssigned},
		"a silent platform":    {place: func(*messages.PlatformPlace) { h.silent(errors.New("down")) }, admit: messages.PlatformAway, attempt: messages.PlatformAway},
		"assigned meanwhile":   {place: func(*messages.PlatformPlace) { h.changes(2) }, admit: messages.NotAssigned, attempt: messages.NotAssigned},
		"by the door of hosts": {},
	} {
		at, who := place, whole
		if c.change != nil {
			c.change(&who)
		}
		admit := messages.AdmitRun{Controller: who, Run: "run-" + strings.Repeat("0", 32), Request: messages.RunRequest{Subject: subject.String(), Payload: payload}}
		attempt := messages.AttemptRun{Controller: who, Run: admit.Run, Request: strings.Repeat("q", 22), Takeover: "t", Attempt: 1, Driver: d, Mediator: m}
		operate := messages.OperateRun{Controller: who, Run: admit.Run, Key: d}
		if name == "by the door of hosts" {
			admit.Controller.Principal = space.ControllerPrincipal(h.Space.PlatformOwner(), place.Instance)
			if _, err := h.Space.AdmitRun(h.Context(), admit); !errors.Is(err, messages.Malformed) {
				h.Errorf("%s: %v", name, err)
			}
			continue
		}
		for what, ask := range map[string]func() error{
			"admit":   func() error { _, err := h.Space.AdmitPlatformRun(h.Context(), at, admit); return err },
			"attempt": func() error { _, err := h.Space.AttemptPlatformRun(h.Context(), at, attempt); return err },
			"operate": func() error { _, err := h.Space.OperatePlatformRun(h.Context(), at, operate); return err },
		} {
			if at = place; c.place != nil {
				c.place(&at)
			}
			want := map[string]error{"admit": c.admit, "attempt": c.attempt, "operate": c.attempt}[what]
			if err := ask(); !errors.Is(err, want) {
				h.Errorf("%s, %s: %v, want %v", what, name, err, want)
			}
			h.silent(nil)
			h.mu.Lock()
			h.there, h.changesAfter = true, 0
			h.mu.Unlock()
		}
	}
	if after := h.rows(); !slices.Equal(after, before) {
		h.Errorf("what was refused has written: %q, before %q", after, before)
	}
}

// changes has nothing assigned after so many more questions.
func (h *host) changes(after int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changesAfter = after
}
