package space

import (
	"reflect"
	"testing"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

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
