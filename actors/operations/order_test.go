package operations

import (
	"context"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Whoever came later waits for all who came before, and for nobody else.
func TestATurnComesWhenAllBeforeHaveLeft(t *testing.T) {
	var o order
	first, second, third := o.enter(), o.enter(), o.enter()
	turn := make(chan struct{})
	go func() {
		defer close(turn)
		second.awaitTurn(t.Context())
	}()
	third.leave()
	select {
	case <-turn:
		t.Error("the second does not wait for the first")
	default:
	}
	first.leave()
	first.leave() // again
	<-turn
	second.leave()
	if len(o.inside) != 0 {
		t.Errorf("left are %v", o.inside)
	}
	second.awaitTurn(t.Context()) // who has left waits for nobody

	over, cancel := context.WithCancel(t.Context())
	o.enter()
	late := o.enter()
	cancel()
	late.awaitTurn(over)
}
