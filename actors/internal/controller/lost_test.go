package controller_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// unheard is a backend that does not answer one of its writes, whether that landed or not.
type unheard struct {
	ledger.Backend
	at    int // counted from 0
	lands bool
	sends int
}

func (u *unheard) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	mine := u.sends == u.at
	u.sends++
	if mine && !u.lands {
		return 0, ledger.ErrUnknown
	}
	last, err := u.Backend.Send(ctx, b)
	if mine {
		return 0, ledger.ErrUnknown
	}
	return last, err
}

// Whoever does not hear what became of a write finds out, and answers as if he had: with
// the same credentials, recorded once, whoever asks again.
func TestAnAnswerLostAtEveryWrite(t *testing.T) {
	for _, door := range controller.Doors {
		for at := range 2 {
			for _, lands := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, write %d, landed %v", door, at, lands), func(t *testing.T) {
					r := newRig(t)
					p := r.program(0)
					if door != messages.DoorPrepare {
						p.asks(messages.DoorPrepare)
					}
					if door != messages.DoorPrepare && door != messages.DoorActivate {
						p.receipt = p.asks(messages.DoorActivate).Receipt
					}
					stood := len(r.family())
					ask := p.request(door)
					backend := &unheard{Backend: r.backend, at: at, lands: lands}
					issued, err := r.over(backend).Answer(t.Context(), controller.Person{Principal: boss}, ask)
					r.must(err)
					if backend.sends <= at {
						t.Fatal("it never wrote that")
					}
					r.recorded(issued)
					again, err := p.ask(ask)
					r.must(err)
					if len(r.family()) != stood+len(issued.Credentials) {
						t.Errorf("%d rows for %d credentials", len(r.family())-stood, len(issued.Credentials))
					}
					issued.Receipt, again.Receipt = messages.Secret{}, messages.Secret{}
					if !reflect.DeepEqual(again, issued) {
						t.Errorf("answered %+v, then %+v", issued, again)
					}
				})
			}
		}
	}
}
