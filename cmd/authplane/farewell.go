package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/life"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// lived is how it went with something that was kept.
type lived struct {
	// name is that of kept.
	name string
	life.Ending
	// unborn says that it did not start, or did not stop to.
	unborn bool
	// connections are those that it ever opened.
	connections []messages.Connection
}

// verdict is what is to be said against it; nil if it ended as it should.
func (l lived) verdict() error {
	err := l.Err
	switch {
	case l.unborn: // which says of what space it is
		return errors.Join(l.Cause, l.Err)
	case l.Cause != nil && l.name == "":
		return fmt.Errorf("the space failed: %w", l.Cause)
	case l.Cause != nil:
		return fmt.Errorf("space %s failed: %w", l.name, l.Cause)
	case err == nil && !l.Closed:
		err = life.ErrLate
	}
	if err == nil || l.name == "" {
		return err
	}
	return fmt.Errorf("space %s: %w", l.name, err)
}

// ended is the last line of dev and serve.
type ended struct {
	Closed      bool                  `json:"closed"`
	Connections []messages.Connection `json:"connections"`
	Errors      []string              `json:"errors"`
}

// farewell says how it ended, in one line for all, and returns an error unless every
// one ended as it should. Where none has come up there is nothing to say but why.
func (a *app) farewell(lives []lived) error {
	last := ended{Closed: true, Connections: []messages.Connection{}, Errors: []string{}}
	var verdicts []error
	for _, l := range lives {
		last.Closed = last.Closed && l.Closed
		last.Connections = append(last.Connections, l.connections...)
		last.Errors = append(last.Errors, l.errors()...)
		verdicts = append(verdicts, l.verdict())
	}
	against := errors.Join(verdicts...)
	if !slices.ContainsFunc(lives, func(l lived) bool { return !l.unborn }) {
		return against
	}
	if a.json {
		if err := writeJSON(a.out, last); err != nil {
			return err
		}
	} else {
		a.say("%s", last.summary())
	}
	if against != nil {
		return failure{against}
	}
	return nil
}

// errors lists what failed, each with the name in front.
func (l lived) errors() []string {
	list := append(leaves(l.Cause), leaves(l.Err)...)
	if l.name != "" {
		for i := range list {
			list[i] = l.name + ": " + list[i]
		}
	}
	return list
}

// summary is the last line for people: what is left, if anything is.
func (e ended) summary() string {
	var left []string
	for _, c := range e.Connections {
		if !c.Ended {
			left = append(left, c.Label)
		}
	}
	switch {
	case len(left) > 0:
		return "still connected: " + strings.Join(left, ", ")
	case !e.Closed:
		return "not closed"
	default:
		return fmt.Sprintf("closed; all %d connections have ended", len(e.Connections))
	}
}

// leaves lists what failed, one line for each part; an error that is no tree is one.
func leaves(err error) []string {
	if err == nil {
		return nil
	}
	var list []string
	for _, failed := range supervisor.Leaves(err) {
		list = append(list, failed.Error())
	}
	if len(list) == 0 {
		list = append(list, err.Error())
	}
	return list
}
