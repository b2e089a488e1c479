package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
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

// keep runs services side by side in the foreground, each as if it were alone, until
// the last of them has ended: by a signal, which is for all, or by a failure, which
// leaves the others be.
func (a *app) keep(ctx context.Context, list ...kept) error {
	signals := make(chan os.Signal, 2) // two: the one that closes and the one that hurries
	signal.Notify(signals, endings()...)
	defer signal.Stop(signals)
	return a.farewell(a.together(ctx, list, signals, life.NewManager()))
}

// kept is what keep is to run.
type kept struct {
	// name is what tells it from others beside it; empty for one that is alone.
	name  string
	start starter
	// welcome says that it is ready, to people.
	welcome func(service.Record) error
	// log hears of a failure that others beside it outlive.
	log *slog.Logger
}

// together keeps all of a list and tells how each has ended.
func (a *app) together(ctx context.Context, list []kept, signals <-chan os.Signal, manager life.Manager) []lived {
	lives, ears, managers := make([]lived, len(list)), make([]chan os.Signal, len(list)), manager.Share(len(list))
	var all sync.WaitGroup
	for i, k := range list {
		ears[i] = make(chan os.Signal, cap(signals))
		all.Go(func() {
			defer managers[i].Stopping() // those that were never ready too
			lives[i] = a.live(ctx, k, ears[i], managers[i])
			a.lost(k, lives[i])
		})
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }() // ends with the last of them
	for {
		select {
		case s := <-signals:
			for _, ear := range ears {
				select {
				case ear <- s:
				default: // it is in a hurry already
				}
			}
		case <-over:
			return lives
		}
	}
}

// live runs one service: from its start, over the line that says it is ready, to the
// signal or failure that ends it.
func (a *app) live(ctx context.Context, k kept, signals chan os.Signal, manager life.Manager) lived {
	stop := manager.Extend()
	service, asked, err := begin(ctx, k.start, signals)
	stop()
	switch {
	case errors.Is(err, life.ErrLate):
		return lived{name: k.name, unborn: true, Ending: life.Ending{Err: err}}
	case asked && err != nil:
		return lived{name: k.name, Ending: calledOff(err)}
	case err != nil:
		return lived{name: k.name, unborn: true, Ending: life.Ending{Cause: err, Closed: true}}
	}
	attendant := life.Attendant{Signals: signals, Manager: manager, Well: answers(service),
		Closing: func(cause error) { a.closing(k, cause) }}
	if asked {
		attendant.Signals = askedAlready(signals)
	}
	if err := a.announce(service.Record(), k.welcome); err != nil {
		a.say("authplane: %v", err) // it can be used all the same
	}
	ending := attendant.Attend(service)
	return lived{name: k.name, Ending: ending, connections: service.Connections()}
}

// closing says that something begins to close: it was asked to, or has failed.
func (a *app) closing(k kept, cause error) {
	switch {
	case k.name == "":
		a.say("closing; a further signal hurries")
	case cause == nil:
		a.say("closing space %s; a further signal hurries", k.name)
	default:
		k.log.Error("a space has failed and closes; the others go on", "space", k.name, "error", cause)
	}
}

// lost says that something has ended by itself while others may go on.
func (a *app) lost(k kept, l lived) {
	if k.name != "" && l.Cause != nil {
		k.log.Error("a space is no longer served", "space", k.name, "closed", l.Closed, "error", l.verdict())
	}
}

// announce says that the service is ready, one after the other.
func (a *app) announce(record service.Record, welcome func(service.Record) error) error {
	a.announcing.Lock()
	defer a.announcing.Unlock()
	if a.json {
		return writeJSON(a.out, record)
	}
	return welcome(record)
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
				return nil, true, failure{fmt.Errorf("start: %w", life.ErrLate)}
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
