package controller_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

func kinds(issued messages.ControllerIssued) (all []messages.ControllerKind) {
	for _, c := range issued.Credentials {
		all = append(all, c.Kind)
	}
	return all
}

// Every door gives exactly its credentials, and only what stands in the ledger.
func TestTheDoors(t *testing.T) {
	r := newRig(t)
	p := r.program(0)
	five := []messages.ControllerKind{messages.KindSupervisor, messages.KindExecutor, messages.KindServer, messages.KindRecorder, messages.KindLedger}
	for _, c := range []struct {
		door    messages.ControllerDoor
		want    []messages.ControllerKind
		first   time.Duration // until the first of them runs out
		receipt bool
	}{
		{messages.DoorPrepare, five[:2], controller.ExecutorLife, false},
		{messages.DoorActivate, five[2:], time.Hour, true},
		{messages.DoorRenew, five, controller.ExecutorLife, true},
		{messages.DoorSession, []messages.ControllerKind{messages.KindSession}, time.Hour, false},
		{messages.DoorRetire, []messages.ControllerKind{messages.KindRequester}, controller.RequesterLife, false},
	} {
		issued := p.asks(c.door)
		if c.door == messages.DoorActivate {
			p.receipt = issued.Receipt
		}
		if !slices.Equal(kinds(issued), c.want) || issued.Expires.Sub(r.now()) != c.first || issued.Receipt.IsZero() == c.receipt {
			t.Errorf("%s gives %+v", c.door, issued)
		}
		if c.receipt && issued.Receipt.Reveal() != p.receipt.Reveal() {
			t.Errorf("%s gives another receipt", c.door)
		}
		r.recorded(issued)
		for _, one := range issued.Credentials {
			var said broker.ControllerUser
			r.must(json.Unmarshal([]byte(one.JWT), &said))
			if said.Endpoint != endpoint || said.Instance != instance || said.User != one.User ||
				said.Kind == messages.KindServer && !slices.Equal(said.Commands, []string{"start", "stop"}) {
				t.Errorf("%s: signed %+v", c.door, said)
			}
		}
	}
	all, err := r.desk.List(t.Context())
	r.must(err)
	if len(all.Items) != 1 || all.Items[0].Live != 12 || !all.Items[0].Activated || all.Items[0].Prepared != 0 {
		t.Errorf("listed %+v", all)
	}
}

// Whoever is not the one, or not the one any more, gets nothing at any door.
func TestRefusalsAtEveryDoor(t *testing.T) {
	r := newRig(t)
	p := r.program(0).starts()
	laptop := func(owner, actor string) controller.Person {
		return controller.Person{Principal: messages.Principal{Owner: owner, Actor: actor}}
	}
	r.grant(laptop(owner, "spawner").Principal, messages.Interactive, "spawn", "admin")
	r.grant(laptop(owner, "robot").Principal, messages.Managed, "supervise")
	r.grant(laptop(other, boss.Actor).Principal, messages.Interactive, "supervise")
	for _, door := range controller.Doors {
		for _, c := range []struct {
			what   string
			want   error
			holder controller.Person
			change func(*messages.ControllerRequest)
		}{
			{"scopes that do not imply it", messages.SuperviseMissing, laptop(owner, "spawner"), func(r *messages.ControllerRequest) { r.Actor = "spawner" }},
			{"a machine", messages.GrantKindMismatch, laptop(owner, "robot"), func(r *messages.ControllerRequest) { r.Actor = "robot" }},
			{"nobody", messages.NotGranted, laptop(owner, "ghost"), func(r *messages.ControllerRequest) { r.Actor = "ghost" }},
			{"an old bearer", messages.IncarnationEnded, controller.Person{Principal: boss, UID: uid, Credential: "c", Scope: []string{"supervise"}}, nil},
			{"another actor than the proof's", messages.ControllerActor, laptop(owner, "spawner"), nil},
			{"another space", messages.ControllerSpace, controller.Person{Principal: boss}, func(r *messages.ControllerRequest) { r.Space = "other" }},
			{"another owner", messages.InstanceForeign, laptop(other, boss.Actor), nil},
			{"an instance that is none", messages.ControllerUnregistered, controller.Person{Principal: boss}, func(r *messages.ControllerRequest) { r.Instance = strings.Repeat("z", 26) }},
			{"a future epoch", messages.InstanceSuperseded, controller.Person{Principal: boss}, func(r *messages.ControllerRequest) { r.Epoch = 7 }},
			{"two users with one key", messages.Malformed, controller.Person{Principal: boss}, func(r *messages.ControllerRequest) { r.Keys.Server = r.Keys.Ledger }},
			{"no id", messages.Malformed, controller.Person{Principal: boss}, func(r *messages.ControllerRequest) { r.ID = "short" }},
		} {
			ask := p.request(door)
			if c.change != nil {
				c.change(&ask)
			}
			p.refused(c.what, c.want, c.holder, ask)
		}
	}
	me := controller.Person{Principal: boss}
	for _, door := range []messages.ControllerDoor{messages.DoorRenew, messages.DoorSession, messages.DoorRetire} {
		forged := p.request(door)
		forged.Receipt = messages.NewSecret(strings.Repeat("0", 64))
		p.refused("a forged receipt", messages.ReceiptInvalid, me, forged)
	}
	for _, door := range controller.Doors {
		rival := r.program(0)
		rival.receipt = p.receipt
		want := error(messages.ControllerTaken)
		if door != messages.DoorPrepare && door != messages.DoorActivate {
			want = messages.ReceiptInvalid
		}
		rival.refused("another program", want, me, rival.request(door))
	}

	late := r.program(1)
	r.register(owner)
	for _, door := range controller.Doors {
		p.refused("a superseded process", messages.InstanceSuperseded, me, p.request(door))
	}
	for _, door := range controller.Doors[1:] {
		late.receipt = p.receipt
		want := error(messages.ReceiptInvalid)
		if door == messages.DoorActivate {
			want = messages.ControllerUnprepared
		}
		late.refused("one that has not prepared", want, me, late.request(door))
	}
	late.starts()
	for id, c := range r.family() {
		if c.Epoch == 0 && c.State != ledger.CredentialRevoked {
			t.Errorf("%s of the former process is %s", id, c.State)
		}
	}
}

// What belongs to one door is refused at the others.
func TestWhatBelongsToAnotherDoor(t *testing.T) {
	r := newRig(t)
	p := r.program(0).starts()
	me := controller.Person{Principal: boss}
	session, retire := p.request(messages.DoorSession), p.request(messages.DoorRetire)
	changes := map[string]func(*messages.ControllerRequest){
		"a receipt": func(r *messages.ControllerRequest) { r.Receipt = p.receipt },
		"commands":  func(r *messages.ControllerRequest) { r.Commands = []string{"x"} },
		"a session": func(r *messages.ControllerRequest) { r.Session = session.Session },
		"a target":  func(r *messages.ControllerRequest) { r.Target = retire.Target },
	}
	has := map[string][]messages.ControllerDoor{
		"a receipt": {messages.DoorRenew, messages.DoorSession, messages.DoorRetire}, "commands": {messages.DoorActivate},
		"a session": {messages.DoorSession}, "a target": {messages.DoorRetire},
	}
	for what, change := range changes {
		for _, door := range controller.Doors {
			if slices.Contains(has[what], door) {
				continue
			}
			ask := p.request(door)
			change(&ask)
			p.refused(what, messages.Malformed, me, ask)
		}
	}
	for what, c := range map[string]struct {
		want   error
		change func(*messages.ControllerRequest)
	}{
		"the operation of another incarnation": {messages.Malformed, func(r *messages.ControllerRequest) { r.Target.Operation = ledger.OperationOf(instance) }},
		"somebody else's principal":            {messages.ControllerRetiresOthers, func(r *messages.ControllerRequest) { r.Target.Principal.Owner = other }},
		"a key that stands for something else": {messages.Malformed, func(r *messages.ControllerRequest) { r.Target.User = r.Keys.Supervisor }},
	} {
		ask := p.request(messages.DoorRetire)
		c.change(&ask)
		p.refused(what, c.want, me, ask)
	}
	long := p.request(messages.DoorSession)
	long.Session.Expires = r.now().Add(1000 * time.Hour)
	issued, err := p.ask(long)
	if err != nil || issued.Expires.Sub(r.now()) != controller.SessionLife {
		t.Errorf("a session for long is %+v, %v", issued, err)
	}
	over := p.request(messages.DoorSession)
	over.Session.Expires = r.now().Add(-time.Second)
	p.refused("a session that has ended", messages.Malformed, me, over)
	other := p.request(messages.DoorActivate)
	other.Commands = []string{"start", "wreck"}
	p.refused("other commands", messages.ControllerTaken, me, other)
}

// The same question has the same answer, whichever process is asked; another one under
// its id is a conflict; and what is remembered does not grow.
func TestTheSameRequestHasTheSameAnswer(t *testing.T) {
	r := newRig(t)
	p := r.program(0).starts()
	ask := p.request(messages.DoorRenew)
	first, err := p.ask(ask)
	r.must(err)
	r.pass(90 * time.Second)
	before := len(r.family())
	again, err := r.over(r.backend).Answer(t.Context(), controller.Person{Principal: boss}, ask)
	r.must(err)
	if again.Receipt.Reveal() != first.Receipt.Reveal() {
		t.Error("the receipts differ")
	}
	first.Receipt, again.Receipt = messages.Secret{}, messages.Secret{}
	if !reflect.DeepEqual(first, again) || len(r.family()) != before {
		t.Errorf("answered %+v, then %+v", first, again)
	}
	for _, door := range []messages.ControllerDoor{messages.DoorPrepare, messages.DoorSession} {
		reused := p.request(door)
		reused.ID = ask.ID
		p.refused("an id for another request", messages.ControllerRequestConflict, controller.Person{Principal: boss}, reused)
	}
	r.pass(controller.ExecutorLife)
	fresh, err := p.ask(ask) // forgotten by now: it would answer what has run out
	r.must(err)
	if !fresh.Issued.After(first.Issued) {
		t.Errorf("answered %+v", fresh)
	}
	for range 40 { // the first are forgotten by then
		r.pass(10 * time.Second)
		p.asks(messages.DoorPrepare)
	}
	row, _, err := r.backend.Get(t.Context(), ledger.ControllerKey(endpoint, instance))
	r.must(err)
	known, err := ledger.DecodeController(row)
	r.must(err)
	if len(known.Requests) > 13 {
		t.Errorf("%d requests are remembered", len(known.Requests))
	}
	for i := 0; ; i++ {
		if _, err = p.ask(p.request(messages.DoorPrepare)); err != nil {
			break
		}
		if i > ledger.MaxRequests {
			t.Fatal("it may ask for ever")
		}
	}
	if !errors.Is(err, messages.ControllerRequests) {
		t.Errorf("asked too often: %v", err)
	}
}

// Two programs that take themselves for the same process: one is it, whoever is asked.
func TestTwoControllersRace(t *testing.T) {
	r := newRig(t)
	for epoch := range uint64(10) {
		rivals := []*program{r.program(epoch), r.program(epoch)}
		requests := []messages.ControllerRequest{rivals[0].request(messages.DoorPrepare), rivals[1].request(messages.DoorPrepare)}
		errs := make([]error, 2)
		var both sync.WaitGroup
		for i := range rivals {
			both.Go(func() {
				_, errs[i] = r.over(r.backend).Answer(t.Context(), controller.Person{Principal: boss}, requests[i])
			})
		}
		both.Wait()
		won := slices.Index(errs, nil)
		if won < 0 || !errors.Is(errs[1-won], messages.ControllerTaken) {
			t.Fatalf("answered %v", errs)
		}
		for _, c := range r.family() {
			if strings.Contains(c.ID, rivals[1-won].keys.Supervisor) {
				t.Errorf("%s was issued", c.ID)
			}
		}
		rivals[won].starts()
		r.register(owner)
	}
	// The same request twice at once has one answer.
	p := r.program(10)
	p.asks(messages.DoorPrepare)
	ask := p.request(messages.DoorActivate)
	answers := make([]messages.ControllerIssued, 4)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			var err error
			if answers[i], err = r.over(r.backend).Answer(t.Context(), controller.Person{Principal: boss}, ask); err != nil {
				t.Error(err)
			}
			answers[i].Receipt = messages.Secret{}
		})
	}
	all.Wait()
	for _, a := range answers[1:] {
		if !reflect.DeepEqual(a, answers[0]) {
			t.Errorf("answered %+v and %+v", answers[0], a)
		}
	}
}

// A right that is lost while the ledger is written gives nothing, although rows stand.
func TestARightThatIsLostMeanwhile(t *testing.T) {
	r := newRig(t)
	p := r.program(0).starts()
	holder := &fickle{}
	p.refused("a right that is lost", messages.NotGranted, holder, p.request(messages.DoorRenew))
	if holder.asked != 2 {
		t.Errorf("asked %d times", holder.asked)
	}
}
