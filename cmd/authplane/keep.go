package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/life"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// running is what dev and serve keep alive.
type running interface {
	life.Service
	Status() messages.Status
	// Connections lists every connection that was opened, those that ended included.
	Connections() []messages.Connection
	// Record is what is told about the service once it is ready.
	Record() service.Record
}

// starter opens what is kept alive. When its context ends it unwinds what it opened.
type starter func(context.Context) (running, error)

// keep runs a service in the foreground: from its start, over the line that says
// it is ready, to the signal or failure that ends it and the line that says how.
func (a *app) keep(ctx context.Context, start starter, welcome func(service.Record) error) error {
	signals := make(chan os.Signal, 2) // two: the one that closes and the one that hurries
	signal.Notify(signals, endings()...)
	defer signal.Stop(signals)

	manager := life.NewManager()
	stop := manager.Extend()
	kept, asked, err := begin(ctx, start, signals)
	stop()
	switch {
	case asked && err != nil:
		return a.farewell(nil, calledOff(err))
	case err != nil:
		return err
	}
	attendant := life.Attendant{Signals: signals, Manager: manager, Well: answers(kept),
		Closing: func() { a.say("closing; a further signal hurries") }}
	if asked {
		attendant.Signals = askedAlready(signals)
	}
	if err := a.announce(kept.Record(), welcome); err != nil {
		a.say("authplane: %v", err) // it can be used all the same
	}
	ending := attendant.Attend(kept)
	return a.farewell(kept.Connections(), ending)
}

// endings are the signals that ask for the end. A hangup is one, unless whoever
// started the process, nohup for instance, has it ignored.
func endings() []os.Signal {
	list := []os.Signal{syscall.SIGTERM, os.Interrupt}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// begin starts the service; a signal meanwhile calls the start off. asked says that
// there was one.
func begin(ctx context.Context, start starter, signals <-chan os.Signal) (kept running, asked bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		kept running
		err  error
	}
	done := make(chan outcome, 1) // one: the start is always waited for, or left at a second signal
	go func() {
		kept, err := start(ctx)
		done <- outcome{kept, err}
	}()
	for {
		select {
		case o := <-done:
			return o.kept, asked, o.err
		case <-signals:
			if asked {
				return nil, false, failure{fmt.Errorf("start: %w", life.ErrLate)}
			}
			asked = true
			cancel()
		}
	}
}

// calledOff is how a start ended that a signal called off: well, unless something
// that was open already did not close.
func calledOff(err error) life.Ending {
	var left []error
	for _, failed := range supervisor.Leaves(err) {
		if failed.Phase == supervisor.PhaseUnwind {
			left = append(left, failed)
		}
	}
	return life.Ending{Err: errors.Join(left...), Closed: len(left) == 0}
}

// askedAlready yields one signal at once and then those of the given channel.
func askedAlready(signals chan os.Signal) chan os.Signal {
	select {
	case signals <- syscall.SIGTERM:
	default: // there is one in it
	}
	return signals
}

// answers reports whether the service still tells its state. It hangs with it.
func answers(kept running) func() bool {
	return func() bool { return kept.Status().State != "" }
}

// announce says that the service is ready.
func (a *app) announce(record service.Record, welcome func(service.Record) error) error {
	if a.json {
		return writeJSON(a.out, record)
	}
	return welcome(record)
}

// ended is the last line of dev and serve.
type ended struct {
	Closed      bool                  `json:"closed"`
	Connections []messages.Connection `json:"connections"`
	Errors      []string              `json:"errors"`
}

// farewell says how it ended, and returns an error unless it ended as it should.
func (a *app) farewell(connections []messages.Connection, ending life.Ending) error {
	last := ended{Closed: ending.Closed, Connections: connections, Errors: []string{}}
	if last.Connections == nil {
		last.Connections = []messages.Connection{}
	}
	last.Errors = append(append(last.Errors, leaves(ending.Cause)...), leaves(ending.Err)...)
	if a.json {
		if err := writeJSON(a.out, last); err != nil {
			return err
		}
	} else {
		a.say("%s", last.summary())
	}
	switch {
	case ending.Cause != nil:
		return failure{fmt.Errorf("the space failed: %w", ending.Cause)}
	case ending.Err != nil:
		return failure{ending.Err}
	case !ending.Closed:
		return failure{life.ErrLate}
	}
	return nil
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
