package controller_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/messages"
)

// TestWhateverHappensToAController has two programs of each process ask at the doors in
// any order, under new ids and old ones, over registrations and the passing of
// time. Whatever is released stands in the ledger for the process that counts; of the
// programs of a process one is ever given anything; and what was answered is answered
// again.
func TestWhateverHappensToAController(t *testing.T) {
	rapid.Check(t, func(c *rapid.T) {
		r := newRig(t)
		programs := []*program{r.program(0), r.program(0)}
		winners := map[uint64]messages.ControllerKeys{} // who was given something, by epoch
		var epoch uint64
		var last *messages.ControllerRequest
		var said messages.ControllerIssued
		var forget time.Time
		check := func(p *program, ask messages.ControllerRequest, again bool) {
			issued, err := p.desk.Answer(t.Context(), controller.Person{Principal: boss}, ask)
			if err != nil {
				if len(issued.Credentials) > 0 || again && ask.Epoch == epoch && r.now().Before(forget) {
					c.Fatalf("released %d with %v", len(issued.Credentials), err)
				}
				return
			}
			if issued.Epoch != epoch {
				c.Fatalf("process %d is given something, and %d counts", issued.Epoch, epoch)
			}
			if won, is := winners[epoch]; is && won != ask.Keys {
				c.Fatalf("two programs of process %d are given something", epoch)
			}
			winners[epoch] = ask.Keys
			r.recorded(issued)
			if !issued.Receipt.IsZero() {
				p.receipt = issued.Receipt
			}
			issued.Receipt = messages.Secret{}
			if again && r.now().Before(forget) && !reflect.DeepEqual(issued, said) {
				c.Fatalf("answered %+v, then %+v", said, issued)
			}
			if !again {
				last, said, forget = &ask, issued, issued.Issued.Add(2*time.Minute)
			}
		}
		c.Repeat(map[string]func(*rapid.T){
			"ask": func(c *rapid.T) {
				p := rapid.SampledFrom(programs).Draw(c, "program")
				ask := p.request(rapid.SampledFrom(controller.Doors).Draw(c, "door"))
				if ask.Receipt.IsZero() && ask.Door != messages.DoorPrepare && ask.Door != messages.DoorActivate {
					ask.Receipt = messages.NewSecret("none yet")
				}
				check(p, ask, false)
			},
			"ask again": func(c *rapid.T) {
				if last == nil {
					c.Skip("nothing was answered")
				}
				check(rapid.SampledFrom(programs).Draw(c, "through"), *last, true)
			},
			"register": func(*rapid.T) {
				epoch = r.register(owner).Epoch
				programs = append(programs[max(0, len(programs)-2):], r.program(epoch), r.program(epoch))
			},
			"pass": func(c *rapid.T) {
				r.pass(time.Duration(rapid.IntRange(1, 400).Draw(c, "seconds")) * time.Second)
			},
		})
	})
}
