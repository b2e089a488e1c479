package space

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// A broker that is away is told of once, however many actors wait for it.
func TestABrokerThatIsAwayIsTheCauseOnce(t *testing.T) {
	gone := messages.BrokerAway.From(errors.New("no servers"))
	cause := missing([]supervisor.Node{
		{Path: "plane/writer", State: supervisor.StateRestarting, LastError: fmt.Errorf("open plane/writer: %w", gone)},
		{Path: "plane/reader", State: supervisor.StateRestarting, LastError: gone},
		{Path: "plane/claim", State: supervisor.StateRestarting},
		{Path: "plane/issuer", State: supervisor.StateRestarting, LastError: gone},
		{Path: "callout/1", State: supervisor.StateRestarting, LastError: gone},
		{Path: "exchange", State: supervisor.StateOpen},
	})
	want := "plane/writer is restarting: open plane/writer: " + gone.Error() +
		"; plane/claim is restarting; and so, for the broker, plane/reader, plane/issuer; no responder is open"
	if cause != want {
		t.Errorf("the cause is %q", cause)
	}
}

// An actor that dies again and again is one line among the connections that ended.
func TestConnectionsThatEndedAreListedOnceEach(t *testing.T) {
	var held []supervisor.Holding
	for generation := range uint64(100) {
		held = append(held, supervisor.Holding{Path: "plane/reader", Label: "reader", Generation: generation, Ended: true})
	}
	held = append(held,
		supervisor.Holding{Path: "callout/1", Label: "callout", Ended: true},
		supervisor.Holding{Path: "callout/2", Label: "callout", Ended: true},
		supervisor.Holding{Path: "callout/2", Label: "callout", Generation: 2},
		supervisor.Holding{Path: "plane/writer", Label: "writer"},
		supervisor.Holding{Path: "plane/writer", Label: "writer"}, // both sides of a renewal
	)
	want := []messages.Connection{
		{Label: "reader", Ended: true}, {Label: "callout", Ended: true}, {Label: "callout", Ended: true},
		{Label: "callout"}, {Label: "writer"}, {Label: "writer"},
	}
	if got := connectionsOf(held); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}
