package demo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broken is a stage on which nothing comes up.
type broken struct{ stopped bool }

var errBroken = errors.New("no broker")

func (b *broken) Start(context.Context) (Subject, error) { return nil, errBroken }
func (b *broken) Stop(context.Context) error             { b.stopped = true; return nil }

func TestTheStoryEndsAtTheFirstStepThatFails(t *testing.T) {
	stage := &broken{}
	var lines []Line
	err := Tell(t.Context(), stage, func(l Line) { lines = append(lines, l) })
	if !errors.Is(err, errBroken) || !stage.stopped {
		t.Errorf("got %v, stopped %v", err, stage.stopped)
	}
	if len(lines) != 1 || lines[0].OK || lines[0].Step != "boot" || lines[0].Told != errBroken.Error() {
		t.Errorf("told %+v", lines)
	}
}

// patient is a subject whose actors die as told, in one way only, and come back or not.
type patient struct {
	Subject
	heals      bool
	way        string
	generation uint64
	killed     []string
	// away is how often the tree is still looked at before the actor is open.
	away int
}

func (p *patient) Record() service.Record { return service.Record{Space: "demo"} }

func (p *patient) Tree() []messages.Actor {
	if p.away > 0 {
		p.away--
		return []messages.Actor{{Path: "plane/writer", State: "restarting", Generation: p.generation}}
	}
	return []messages.Actor{
		{Path: "demo", Group: true, State: "open", Generation: 1},
		{Path: "plane", Group: true, State: "open", Generation: 1},
		{Path: "plane/writer", State: "open", Generation: p.generation},
	}
}

func (p *patient) Kill(_ context.Context, path, how string) (string, uint64, error) {
	if how != p.way || p.away > 0 {
		return "", 0, messages.KillInapplicable
	}
	p.killed = append(p.killed, path+" "+how)
	before := p.generation
	if p.heals {
		p.generation++
	}
	return path, before, nil
}

func (p *patient) Events(ctx context.Context) <-chan messages.Event {
	out := make(chan messages.Event, 8)
	for range p.away {
		out <- messages.Event{}
	}
	context.AfterFunc(ctx, func() { close(out) })
	return out
}

func TestEveryActorIsKilledInAWayThatApplies(t *testing.T) {
	// Another death took it down.
	p := &patient{heals: true, way: "disconnect", generation: 1, away: 2}
	told, err := (&story{subject: p, actors: []string{"plane/writer"}}).killEverything(t.Context())
	if err != nil || !strings.Contains(told, "1 actors died, 1 by disconnect") {
		t.Errorf("told %q, %v", told, err)
	}
	if !slices.Equal(p.killed, []string{"plane/writer disconnect"}) {
		t.Errorf("killed %v", p.killed)
	}
}

func TestABootWithoutAnActorIsNone(t *testing.T) {
	paths, err := standing((&patient{generation: 1}).Tree())
	if err != nil || !slices.Equal(paths, []string{"plane/writer"}) {
		t.Errorf("standing are %v, %v", paths, err)
	}
	if paths, err := standing((&patient{generation: 1, away: 1}).Tree()); err == nil {
		t.Errorf("one restarts, and standing are %v", paths)
	}
}

func TestAnActorThatStaysDeadFailsTheStory(t *testing.T) {
	for name, p := range map[string]*patient{
		"it does not come back": {way: "panic", generation: 1},
		"it cannot be killed":   {way: "old age", generation: 1},
	} {
		if _, err := (&story{subject: p, actors: []string{"plane/writer"}}).killEverything(t.Context()); err == nil {
			t.Errorf("%s, and nobody minds", name)
		}
	}
}

// left is a subject that has closed, more or less.
type left struct {
	Subject
	connections []messages.Connection
}

func (l left) Connections() []messages.Connection { return l.connections }

func TestTheInventoryMustBeComplete(t *testing.T) {
	for name, test := range map[string]struct {
		connections []messages.Connection
		well        bool
	}{
		"all ended": {[]messages.Connection{{Label: "a", Ended: true}, {Label: "b", Ended: true}}, true},
		"one lives": {[]messages.Connection{{Label: "a", Ended: true}, {Label: "b"}}, false},
		"empty":     {nil, false},
	} {
		if _, err := (&story{subject: left{connections: test.connections}}).inventory(t.Context()); (err == nil) != test.well {
			t.Errorf("%s: %v", name, err)
		}
	}
}
