package controller_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// fickle may, once.
type fickle struct{ asked int }

func (f *fickle) Who() messages.Principal { return boss }

func (f *fickle) Admit(context.Context, ledger.Source) error {
	if f.asked++; f.asked > 1 {
		return messages.NotGranted
	}
	return nil
}

var errDead = errors.New("the process is dead")

// mortal is a backend of a process that dies at one of its writes, before or after it
// lands; before, when it is set, is called ahead of that write.
type mortal struct {
	ledger.Backend
	at     int // counted from 0; -1 never
	lands  bool
	before func()
	sends  int
	dead   bool
}

func (m *mortal) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	if m.dead {
		return 0, errDead
	}
	mine := m.sends == m.at
	m.sends++
	switch {
	case mine && m.before != nil:
		m.before()
	case mine:
		m.dead = true
		if !m.lands {
			return 0, errDead
		}
	}
	last, err := m.Backend.Send(ctx, b)
	if m.dead {
		return 0, errDead
	}
	return last, err
}

// A process that dies at any of its writes has released nothing; whoever is asked the
// same again answers it, once, and what is released stands.
func TestADeathAtEveryWrite(t *testing.T) {
	for _, door := range controller.Doors {
		for at := 0; ; at++ {
			died := false
			for _, lands := range []bool{false, true} {
				r := newRig(t)
				p := r.program(0)
				if door != messages.DoorPrepare {
					p.asks(messages.DoorPrepare)
				}
				if door != messages.DoorPrepare && door != messages.DoorActivate {
					p.receipt = p.asks(messages.DoorActivate).Receipt
				}
				stood, signed := len(r.family()), r.signatures()
				ask := p.request(door)
				backend := &mortal{Backend: r.backend, at: at, lands: lands}
				_, err := r.over(backend).Answer(t.Context(), controller.Person{Principal: boss}, ask)
				if !backend.dead {
					break
				}
				died = true
				if err == nil || r.signatures() != signed {
					t.Fatalf("%s dies at write %d: %v, and something was signed", door, at, err)
				}
				issued, err := p.ask(ask)
				r.must(err)
				r.recorded(issued)
				if len(r.family()) != stood+len(issued.Credentials) {
					t.Errorf("%s dies at write %d, landed %v: %d rows for %d credentials", door, at, lands, len(r.family())-stood, len(issued.Credentials))
				}
				again, err := p.ask(ask)
				r.must(err)
				issued.Receipt, again.Receipt = messages.Secret{}, messages.Secret{}
				if !reflect.DeepEqual(again, issued) {
					t.Errorf("%s dies at write %d: answers differ", door, at)
				}
			}
			if !died {
				if at != 2 {
					t.Errorf("%s makes %d writes, not 2", door, at)
				}
				break
			}
		}
	}
}

// Whatever registers between two steps of a door, nothing is released for who was
// before.
func TestARegistrationInTheMiddleOfADoor(t *testing.T) {
	for _, door := range controller.Doors {
		for at := range 2 {
			r := newRig(t)
			p := r.program(0)
			if door != messages.DoorPrepare {
				p.asks(messages.DoorPrepare)
			}
			if door != messages.DoorPrepare && door != messages.DoorActivate {
				p.receipt = p.asks(messages.DoorActivate).Receipt
			}
			signed := r.signatures()
			backend := &mortal{Backend: r.backend, at: at, before: func() { r.register(owner) }}
			issued, err := r.over(backend).Answer(t.Context(), controller.Person{Principal: boss}, p.request(door))
			if !errors.Is(err, messages.InstanceSuperseded) || len(issued.Credentials) > 0 || r.signatures() != signed {
				t.Errorf("%s, a registration before write %d: %+v, %v", door, at, issued, err)
			}
			for id, c := range r.family() {
				if c.State != ledger.CredentialRevoked {
					t.Errorf("%s, a registration before write %d: %s is %s", door, at, id, c.State)
				}
			}
			r.program(1).starts()
		}
	}
}

// repair is a registration that dies half-way, and is reconciled: the same process
// counts, under another registration.
func (r *rig) repair() {
	r.Helper()
	stuck := func(context.Context, []messages.Principal) error { return messages.InstanceHeld }
	_, err := ledger.NewRegistrar(r.store, stuck, nil).Hosting().Register(r.Context(), messages.RegisterInstance{Endpoint: endpoint, Instance: instance,
		Principal: controller.Principal(owner, instance)})
	if !errors.Is(err, messages.InstanceHeld) {
		r.Fatal(err)
	}
	p := r.program(0)
	for _, door := range controller.Doors {
		ask := p.request(door)
		if door != messages.DoorPrepare && door != messages.DoorActivate {
			ask.Receipt = messages.NewSecret("r")
		}
		p.refused("at a frozen gate", messages.InstanceNotOpen, controller.Person{Principal: boss}, ask)
	}
	gone := func(context.Context, []messages.Principal) error { return nil }
	_, err = ledger.NewRegistrar(r.store, gone, nil).Reconcile(r.Context(), messages.ReconcileInstance{Endpoint: endpoint, Instance: instance},
		func(context.Context, messages.Instance) error { return nil })
	r.must(err)
}

// A registration that is repaired in the middle of a door is another one than the door
// was asked under: nothing is released, and the former receipt is none any more.
func TestARepairInTheMiddleOfADoor(t *testing.T) {
	for at := range 2 {
		r := newRig(t)
		p := r.program(0).starts()
		signed := r.signatures()
		backend := &mortal{Backend: r.backend, at: at, before: r.repair}
		issued, err := r.over(backend).Answer(t.Context(), controller.Person{Principal: boss}, p.request(messages.DoorRenew))
		if !errors.Is(err, messages.InstanceSuperseded) || len(issued.Credentials) > 0 || r.signatures() != signed {
			t.Errorf("a repair before write %d: %+v, %v", at, issued, err)
		}
		for _, door := range controller.Doors[2:] {
			p.refused("the receipt of the former registration", messages.ReceiptInvalid, controller.Person{Principal: boss}, p.request(door))
		}
		former := p.receipt.Reveal()
		p.receipt = p.asks(messages.DoorActivate).Receipt
		if p.receipt.Reveal() == former {
			t.Error("the receipt is the same")
		}
		r.recorded(p.asks(messages.DoorRenew))
	}
}
