package faults

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/space"
)

// An Injector does harm to the actors of a space at messages that a test names. It is
// receiver middleware: no actor knows of it. The zero one does none.
type Injector struct {
	mu    sync.Mutex
	armed []*Armed
}

// A Harm is what becomes of a message.
type Harm string

const (
	// Throw panics in place of receiving it.
	Throw Harm = "panic"
	// Drop loses it.
	Drop Harm = "drop"
	// Hold keeps the actor on it until the fault is disarmed; then it is received.
	Hold Harm = "hold"
)

// A Fault says which message of which actor, counted over all its lives from when the
// fault is armed.
type Fault struct {
	Actor string
	Harm  Harm
	// Message is of the type that counts; nil counts every message but what the
	// library says of the actor's own life.
	Message any
	// Nth is the first message that is struck; zero is the first of all.
	Nth int
	// Always strikes every later one as well.
	Always bool
}

// Armed is a fault that waits for its message.
type Armed struct {
	fault  Fault
	seen   int // guarded by the injector
	struck chan struct{}
	over   chan struct{}
	once   sync.Once // closes over
}

// Into makes a space of this configuration suffer.
func (i *Injector) Into(c *space.Config) { c.Middleware = i.Middleware }

// Arm readies a fault.
func (i *Injector) Arm(f Fault) *Armed {
	a := &Armed{fault: f, struck: make(chan struct{}), over: make(chan struct{})}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.armed = append(i.armed, a)
	return a
}

// Struck is closed when the fault has met its message.
func (a *Armed) Struck() <-chan struct{} { return a.struck }

// Disarm ends the fault, and lets go what it holds.
func (a *Armed) Disarm() { a.once.Do(func() { close(a.over) }) }

// Middleware is what a space puts before its actors.
func (i *Injector) Middleware(path string) []actor.ReceiverMiddleware {
	return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
			for _, a := range i.meets(path, e.Message) {
				switch a.fault.Harm {
				case Throw:
					panic(fmt.Sprintf("injected at %T", e.Message))
				case Drop:
					return
				case Hold:
					<-a.over
				}
			}
			next(c, e)
		}
	}}
}

// meets lists the faults that strike this message.
func (i *Injector) meets(path string, message any) []*Armed {
	i.mu.Lock()
	defer i.mu.Unlock()
	var strike []*Armed
	for _, a := range i.armed {
		if a.fault.Actor == path && a.fault.counts(message) && a.due() {
			strike = append(strike, a)
		}
	}
	return strike
}

func (f Fault) counts(message any) bool {
	if f.Message != nil {
		return reflect.TypeOf(f.Message) == reflect.TypeOf(message)
	}
	switch message.(type) {
	case *actor.Started, *actor.Stopping, *actor.Stopped, *actor.Terminated:
		return false
	}
	return true
}

// due counts a message, and says whether it is one to strike.
func (a *Armed) due() bool {
	select {
	case <-a.over:
		return false
	default:
	}
	a.seen++
	switch first := max(a.fault.Nth, 1); {
	case a.seen == first:
		close(a.struck)
		return true
	case a.seen > first:
		return a.fault.Always
	}
	return false
}
