package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	ctl "github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/actors/internal/platform"
	"github.com/cotal-ai/authplane/actors/internal/run"
	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
)

// registry is the ledger in which controllers are registered, and the doors that give them
// their receipts.
type registry struct {
	*testing.T
	store *ledger.Store
	desk  *ctl.Desk
	// assigned is what the platform has assigned.
	assigned messages.Assignment
	account  string
	platform *platform.Door
	asked    int
}

// Assignment is messages.Assignments.
func (g *registry) Assignment(context.Context) (messages.Assignment, bool, error) {
	return g.assigned, g.assigned.Instance != "", nil
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	g := &registry{T: t, store: ledger.NewStore(memory.New(), ledger.DefaultPatience())}
	g.desk = ctl.New(g.store, ctl.Config{Space: "acme", ReceiptKey: messages.NewSecret(strings.Repeat("k", 32)),
		Sign: func(u broker.ControllerUser) (string, error) { text, err := json.Marshal(u); return string(text), err }})
	pair, err := nkeys.CreateAccount()
	g.must(err)
	g.account, err = pair.PublicKey()
	g.must(err)
	g.platform, err = platform.Open("acme", g.account, messages.NewSecret(strings.Repeat("s", 32)), g)
	g.must(err)
	return g
}

func (g *registry) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// grants gives somebody scopes, and these alone.
func (g *registry) grants(p messages.Principal, scope ...string) {
	g.Helper()
	writer := ledger.NewWriter(g.store, ledger.Options{Instance: "test"})
	found, err := ledger.NewReader(g.store, nil).Authority(g.Context(), messages.ReadAuthority{Principal: p})
	g.must(err)
	if found.HasGrant {
		_, err = writer.EditGrant(g.Context(), messages.EditGrant{Principal: p, Revision: found.Grant.Revision, By: "test", Allowance: messages.Allowance{Scope: scope}})
	} else {
		_, err = writer.PutGrant(g.Context(), messages.PutGrant{Principal: p, Kind: messages.Interactive, By: "test", Allowance: messages.Allowance{Scope: scope}})
	}
	g.must(err)
}

// registers makes a new process the one of an instance, on behalf of a holder, and has it
// prepare and activate.
func (g *registry) registers(holder ctl.Holder, instance string) messages.RunController {
	g.Helper()
	gone := func(context.Context, []messages.Principal) error { return nil }
	who := holder.Who()
	done, err := ledger.NewRegistrar(g.store, gone, nil).Register(g.Context(), messages.RegisterInstance{Endpoint: jobs, Instance: instance,
		Principal: ctl.Principal(who.Owner, instance)})
	g.must(err)
	c := messages.RunController{Endpoint: jobs, Instance: instance, Epoch: done.Instance.Epoch, Principal: done.Instance.Principal, Space: "acme", Actor: who.Actor,
		Keys: messages.ControllerKeys{Supervisor: public(g.T, newKey(g.T)), Executor: public(g.T, newKey(g.T)), Server: public(g.T, newKey(g.T)),
			Recorder: public(g.T, newKey(g.T)), Ledger: public(g.T, newKey(g.T))}}
	for _, door := range []messages.ControllerDoor{messages.DoorPrepare, messages.DoorActivate} {
		g.asked++
		r := messages.ControllerRequest{Door: door, Space: c.Space, Actor: c.Actor, Endpoint: jobs, Instance: instance, Epoch: c.Epoch,
			ID: fmt.Sprintf("request-%020d", g.asked), Keys: c.Keys}
		if door == messages.DoorActivate {
			r.Commands = []string{"start"}
		}
		issued, err := g.desk.Answer(g.Context(), holder, r)
		g.must(err)
		c.Receipt = issued.Receipt
	}
	return c
}

// recognizes is run.Registered on behalf of a holder.
type recognizes struct {
	*registry
	holder ctl.Holder
}

func (r recognizes) Recognize(ctx context.Context, c messages.RunController) error {
	return r.desk.Recognize(ctx, r.holder, c)
}

// doorsOfRuns ask in the name of a controller; each says whether anything was released.
var doorsOfRuns = map[string]func(*rig, messages.RunController) (bool, error){
	"admit": func(r *rig, c messages.RunController) (bool, error) {
		got, err := r.desk.Admit(r.t.Context(), messages.AdmitRun{Controller: c, Run: runB, Request: r.signed(alice, runrequest.Start, runrequest.Body{})})
		return got.Revision > 0, err
	},
	"attempt": func(r *rig, c messages.RunController) (bool, error) {
		ask := r.attempt(1)
		ask.Controller = c
		got, err := r.reserve(ask, nil)
		return got.Attempt > 0, err
	},
	"operate": func(r *rig, c messages.RunController) (bool, error) {
		const token = "tokentokentokentokentoken1"
		got, err := r.desk.Operate(r.t.Context(), messages.OperateRun{Controller: c, Run: runA, Key: public(r.t, newKey(r.t)), Step: "a",
			Served: r.signed(alice, runrequest.Answer, runrequest.Body{Run: runA, Step: "a"})}, journal(r.t, runjournal.NewPause("a", token)))
		return got == token, err
	},
	"revoke": func(r *rig, c messages.RunController) (bool, error) {
		got, err := r.desk.RevokeOwn(r.t.Context(), messages.Principal{Owner: c.Principal.Owner, Actor: "boss"}, messages.RevokeControllerRun{Controller: c, Run: runA, Reason: "enough"})
		return got.Reason == "enough", err
	},
}

// At every door of runs a controller elsewhere shows the receipt of the registration that
// counts, for who runs it; whoever does not gets nothing, and nothing is written.
func TestControllersShowTheirReceipt(t *testing.T) {
	boss, deputy, helper := messages.Principal{Owner: ownerA, Actor: "boss"}, messages.Principal{Owner: ownerA, Actor: "deputy"}, messages.Principal{Owner: ownerA, Actor: "helper"}
	foreign := messages.Principal{Owner: ownerB, Actor: "boss"}
	g := newRegistry(t)
	for _, p := range []messages.Principal{boss, deputy, foreign} {
		g.grants(p, ctl.Scope)
	}
	g.grants(helper, "spawn", "admin")
	me := ctl.Person{Principal: boss}
	old := g.registers(me, instance)
	beside := g.registers(me, another)
	now := g.registers(me, instance)
	if now.Epoch != old.Epoch+1 || old.Receipt.Reveal() == now.Receipt.Reveal() {
		t.Fatalf("%+v, then %+v", old, now)
	}
	with := func(change func(*messages.RunController)) messages.RunController {
		c := now
		change(&c)
		return c
	}
	cases := map[string]struct {
		holder ctl.Person
		who    messages.RunController
		want   error
	}{
		"the one":                          {me, now, nil},
		"no receipt":                       {me, with(func(c *messages.RunController) { c.Receipt = messages.Secret{} }), messages.ReceiptInvalid},
		"a forged one":                     {me, with(func(c *messages.RunController) { c.Receipt = messages.NewSecret(strings.Repeat("0", 64)) }), messages.ReceiptInvalid},
		"the beginning of it":              {me, with(func(c *messages.RunController) { c.Receipt = messages.NewSecret(now.Receipt.Reveal()[:63]) }), messages.ReceiptInvalid},
		"a former process":                 {me, old, messages.InstanceSuperseded},
		"one that says it is newer":        {me, with(func(c *messages.RunController) { c.Epoch++ }), messages.InstanceSuperseded},
		"a former process' receipt":        {me, with(func(c *messages.RunController) { c.Receipt = old.Receipt }), messages.ReceiptInvalid},
		"its keys too":                     {me, with(func(c *messages.RunController) { c.Receipt, c.Keys = old.Receipt, old.Keys }), messages.ReceiptInvalid},
		"the receipt with other keys":      {me, with(func(c *messages.RunController) { c.Keys = old.Keys }), messages.ReceiptInvalid},
		"another instance's":               {me, with(func(c *messages.RunController) { c.Receipt, c.Keys = beside.Receipt, beside.Keys }), messages.ReceiptInvalid},
		"another space":                    {me, with(func(c *messages.RunController) { c.Space = "other" }), messages.ControllerSpace},
		"another actor than the proof's":   {ctl.Person{Principal: deputy}, now, messages.ControllerActor},
		"of another actor who may run any": {ctl.Person{Principal: deputy}, with(func(c *messages.RunController) { c.Actor = "deputy" }), messages.ReceiptInvalid},
		"of an actor who may not":          {ctl.Person{Principal: helper}, with(func(c *messages.RunController) { c.Actor = "helper" }), messages.SuperviseMissing},
		"of another owner":                 {ctl.Person{Principal: foreign}, with(func(c *messages.RunController) { c.Principal.Owner = ownerA }), messages.InstanceForeign},
		"of a narrower bearer":             {ctl.Person{Principal: boss, UID: "bossbossbossbossbossboss01", Credential: "c"}, now, messages.IncarnationEnded},
		"as another principal":             {me, with(func(c *messages.RunController) { c.Principal.Actor = "runner" }), messages.InstanceForeign},
		"one key twice":                    {me, with(func(c *messages.RunController) { c.Keys.Server = c.Keys.Ledger }), messages.Malformed},
	}
	for door, ask := range doorsOfRuns {
		for name, c := range cases {
			r := newRig(t)
			r.admitted(runA)
			r.desk.Receipts = run.ByReceipt(recognizes{g, c.holder})
			had := len(r.keysNow())
			released, err := ask(r, c.who)
			if !errors.Is(err, c.want) || c.want == nil && err != nil || released != (c.want == nil) {
				t.Errorf("%s, %s: released is %v, %v", door, name, released, err)
			}
			if written := len(r.keysNow()) - had; (written > 0) != (c.want == nil) {
				t.Errorf("%s, %s: %d rows are written", door, name, written)
			}
		}
	}
	g.grants(boss, "spawn")
	for door, ask := range doorsOfRuns {
		r := newRig(t)
		r.admitted(runA)
		r.desk.Receipts = run.ByReceipt(recognizes{g, me})
		if released, err := ask(r, now); !errors.Is(err, messages.SuperviseMissing) || released {
			t.Errorf("%s, when its holder may not run it any more: %v, %v", door, released, err)
		}
	}
}

// Whoever is overtaken between the decision and its answer is not told of it.
func TestWhatAControllerWasOvertakenOverIsWithheld(t *testing.T) {
	me := ctl.Person{Principal: messages.Principal{Owner: ownerA, Actor: "boss"}}
	for door, ask := range doorsOfRuns {
		g := newRegistry(t)
		g.grants(me.Principal, ctl.Scope)
		who := g.registers(me, instance)
		r := newRig(t)
		r.admitted(runA)
		r.desk.Receipts = run.ByReceipt(&overtaken{recognizes{g, me}, 0})
		if released, err := ask(r, who); !errors.Is(err, messages.InstanceSuperseded) || released {
			t.Errorf("%s: released is %v, %v", door, released, err)
		}
	}
}

// overtaken has a newer process registered once the first question is answered.
type overtaken struct {
	recognizes
	times int
}

func (o *overtaken) Recognize(ctx context.Context, c messages.RunController) error {
	err := o.recognizes.Recognize(ctx, c)
	if o.times++; o.times == 1 {
		o.registers(o.holder, c.Instance)
	}
	return err
}

// A platform is a holder like any other: its controller has a receipt of its own, for as
// long as the place is assigned.
func TestThePlatformsControllerShowsItsReceipt(t *testing.T) {
	g := newRegistry(t)
	place := messages.PlatformPlace{Space: "acme", Account: g.account, Revision: 1, Endpoint: jobs, Instance: instance}
	g.assigned = messages.Assignment{Account: g.account, Revision: 1, Endpoint: jobs, Instance: instance}
	holder := g.platform.Holder(place)
	who := g.registers(holder, instance)
	caller := messages.Principal{Owner: g.platform.Owner(), Actor: "laptop"}
	asks := func(holder ctl.Holder, c messages.RunController) error {
		r := newRig(t)
		r.keys[caller] = newKey(t)
		r.book.grant(caller, runrequest.Subject{Endpoint: jobs, Command: "*", Caller: caller}.Pattern())
		r.desk.Receipts = run.ByReceipt(recognizes{g, holder})
		_, err := r.desk.Admit(t.Context(), messages.AdmitRun{Controller: c, Run: runA, Request: r.signed(caller, runrequest.Start, runrequest.Body{})})
		if rows := len(r.keysNow()); (rows > 0) != (err == nil) {
			t.Errorf("%d rows stand, %v", rows, err)
		}
		return err
	}
	forged, later := who, place
	forged.Receipt = messages.NewSecret(strings.Repeat("0", 64))
	later.Revision++
	boss := messages.Principal{Owner: ownerA, Actor: messages.PlatformActor}
	g.grants(boss, ctl.Scope)
	for name, c := range map[string]struct {
		holder ctl.Holder
		who    messages.RunController
		want   error
	}{
		"its own":              {holder, who, nil},
		"a forged one":         {holder, forged, messages.ReceiptInvalid},
		"another assignment's": {g.platform.Holder(later), who, messages.NotAssigned},
		"a person's":           {ctl.Person{Principal: boss}, who, messages.InstanceForeign},
	} {
		if err := asks(c.holder, c.who); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	g.assigned = messages.Assignment{}
	if err := asks(holder, who); !errors.Is(err, messages.NotAssigned) {
		t.Errorf("when it is assigned no more: %v", err)
	}
}

// Whoever embeds the space shows no receipt, and a question with one is not his: what is
// meant for the doors of controllers has no way around them.
func TestTheHostShowsNoReceipt(t *testing.T) {
	r := newRig(t)
	ask := messages.AdmitRun{Controller: controller(), Run: runA, Request: r.signed(alice, runrequest.Start, runrequest.Body{})}
	ask.Controller.Receipt = messages.NewSecret(strings.Repeat("0", 64))
	if _, err := r.desk.Admit(t.Context(), ask); !errors.Is(err, messages.Malformed) || len(r.keysNow()) > 0 {
		t.Errorf("%v, %v", err, r.keysNow())
	}
}
