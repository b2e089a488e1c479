package space

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// statusOf reads a space's state off its tree. What cannot answer is named, so
// that `unavailable` never stands without a cause.
func statusOf(name string, tree *supervisor.Tree) messages.Status {
	status := messages.Status{Space: name, State: messages.SpaceReady}
	nodes := tree.Snapshot()
	status.Since = latest(nodes)
	switch tree.State() {
	case supervisor.StateOpening:
		status.State = messages.SpaceStarting
	case supervisor.StateDraining, supervisor.StateClosing:
		status.State = messages.SpaceDraining
	case supervisor.StateClosed:
		status.State = messages.SpaceClosed
	case supervisor.StateFailed:
		status.State = messages.SpaceUnavailable
		status.Cause = fmt.Sprint(tree.Cause())
	default:
		if cause := missing(nodes); cause != "" {
			status.State, status.Cause = messages.SpaceUnavailable, cause
		}
	}
	return status
}

// missing names the parts without which the space serves nobody, or only partly:
// any part of the plane, the faces, or every responder.
func missing(nodes []supervisor.Node) string {
	var away, alike []string // alike wait for the broker, as one of away does
	responders, standing, waits := 0, 0, false
	for _, n := range nodes {
		open := n.State == supervisor.StateOpen
		switch {
		case n.Group, strings.HasPrefix(n.Path, operationsPath+"/"), strings.HasPrefix(n.Path, readinessPath+"/"): // nobody waits for them
		case strings.HasPrefix(n.Path, respondersPath+"/"):
			responders++
			if open {
				standing++
			}
		case !open && waits && errors.Is(n.LastError, messages.BrokerAway):
			alike = append(alike, n.Path)
		case !open:
			waits = waits || errors.Is(n.LastError, messages.BrokerAway)
			away = append(away, describe(n))
		}
	}
	if len(alike) > 0 {
		away = append(away, "and so, for the broker, "+strings.Join(alike, ", "))
	}
	if responders > 0 && standing == 0 {
		away = append(away, "no responder is open")
	}
	return strings.Join(away, "; ")
}

func describe(n supervisor.Node) string {
	text := fmt.Sprintf("%s is %s", n.Path, n.State)
	if n.LastError == nil {
		return text
	}
	return text + ": " + n.LastError.Error()
}

func latest(nodes []supervisor.Node) time.Time {
	var at time.Time
	for _, n := range nodes {
		if n.Since.After(at) {
			at = n.Since
		}
	}
	return at
}

// actorsOf lists the tree as an operator sees it.
func actorsOf(nodes []supervisor.Node) []messages.Actor {
	actors := make([]messages.Actor, 0, len(nodes))
	for _, n := range nodes {
		a := messages.Actor{Path: n.Path, Group: n.Group, State: string(n.State), Generation: n.Generation, Restarts: n.Restarts, Label: n.Label}
		if n.LastError != nil {
			a.LastError = n.LastError.Error()
		}
		actors = append(actors, a)
	}
	return actors
}

// connectionsOf lists what custody holds, and of what it remembers to have ended the
// last of each label that an actor had: one that died a hundred times is one line.
func connectionsOf(holdings []supervisor.Holding) []messages.Connection {
	type role struct{ path, label string }
	last := map[role]int{}
	for i, h := range holdings {
		if h.Ended {
			last[role{h.Path, h.Label}] = i
		}
	}
	connections := make([]messages.Connection, 0, len(holdings))
	for i, h := range holdings {
		if h.Ended && last[role{h.Path, h.Label}] != i {
			continue
		}
		connections = append(connections, messages.Connection{Label: h.Label, Ended: h.Ended})
	}
	return connections
}
