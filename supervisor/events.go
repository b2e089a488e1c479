package supervisor

import (
	"fmt"
	"strings"
	"time"
)

// An Event is something that happened in the tree. The concrete types are values
// of this package; an Event is immutable.
type Event interface {
	// Where says when and to whom it happened.
	Where() Origin
	// String is one line for people. It never shows the contents of a message.
	String() string
}

// Origin is the part that all events have.
type Origin struct {
	Path       string
	Generation uint64 // zero where no life is concerned
	At         time.Time
}

// Where returns the receiver.
func (o Origin) Where() Origin { return o }

func (o Origin) name() string {
	if o.Generation == 0 {
		return o.Path
	}
	return fmt.Sprintf("%s$%d", o.Path, o.Generation)
}

// Opening: a life began to open.
type Opening struct{ Origin }

// Opened: a child is open.
type Opened struct {
	Origin
	Took time.Duration
}

// Died: a life ended without having been asked to, or a group failed.
type Died struct {
	Origin
	Cause error
}

// Restarting: a child will be opened again after In.
type Restarting struct {
	Origin
	Cause error
	In    time.Duration
	Count uint64 // restarts so far, this one included
}

// Fenced: the fence of the group at Path began.
type Fenced struct {
	Origin
	By     string // path of the child that caused it
	Reason error
}

// Healed: everything the fence ended is open again.
type Healed struct {
	Origin
	Reason error
	Took   time.Duration
}

// Draining: a child was asked to drain.
type Draining struct{ Origin }

// Drained: a child answered.
type Drained struct {
	Origin
	Err error
}

// Closing: a child was asked to close.
type Closing struct {
	Origin
	Why Why
}

// Closed: a child is closed. Err is what it reported, or its death meanwhile.
type Closed struct {
	Origin
	Err error
}

// CloseRefused: a child answered Close with an error and is still there.
type CloseRefused struct {
	Origin
	Err error
}

// StillRunning: something of a life did not end within its time.
type StillRunning struct {
	Origin
	What []string // "receive", "task <name>"
}

// RejectedMessage: messages were refused. Refusals of one child in short order are
// counted together.
type RejectedMessage struct {
	Origin
	Count  uint64
	Reason error
}

// ResourceHeld: a resource came into custody.
type ResourceHeld struct {
	Origin
	Label string
}

// ResourceEnded: a resource in custody ended.
type ResourceEnded struct {
	Origin
	Label string
}

// Added and Removed: a child of a dynamic group came or went.
type (
	Added   struct{ Origin }
	Removed struct{ Origin }
)

// Failed: a group gave up and fails upward, or the tree did.
type Failed struct {
	Origin
	Cause error
}

// Missed: a slow subscriber lost Count events at this place.
type Missed struct {
	Origin
	Count uint64
}

func (e Opening) String() string { return e.name() + " opening" }
func (e Opened) String() string  { return fmt.Sprintf("%s open after %s", e.name(), e.Took) }
func (e Died) String() string    { return fmt.Sprintf("%s died: %v", e.name(), e.Cause) }
func (e Restarting) String() string {
	return fmt.Sprintf("%s restarting in %s (restart %d): %v", e.name(), e.In, e.Count, e.Cause)
}
func (e Fenced) String() string {
	return fmt.Sprintf("%s fenced by %s: %v", e.name(), e.By, e.Reason)
}
func (e Healed) String() string   { return fmt.Sprintf("%s healed after %s", e.name(), e.Took) }
func (e Draining) String() string { return e.name() + " draining" }
func (e Drained) String() string  { return e.name() + " drained" + suffix(e.Err) }
func (e Closing) String() string  { return fmt.Sprintf("%s closing (%s)", e.name(), e.Why) }
func (e Closed) String() string   { return e.name() + " closed" + suffix(e.Err) }
func (e CloseRefused) String() string {
	return e.name() + " refused to close" + suffix(e.Err)
}
func (e StillRunning) String() string {
	return fmt.Sprintf("%s still running: %s", e.name(), strings.Join(e.What, ", "))
}
func (e RejectedMessage) String() string {
	return fmt.Sprintf("%s rejected %d message(s): %v", e.name(), e.Count, e.Reason)
}
func (e ResourceHeld) String() string  { return e.name() + " holds " + e.Label }
func (e ResourceEnded) String() string { return fmt.Sprintf("%s: %s ended", e.name(), e.Label) }
func (e Added) String() string         { return e.name() + " added" }
func (e Removed) String() string       { return e.name() + " removed" }
func (e Failed) String() string        { return fmt.Sprintf("%s failed: %v", e.name(), e.Cause) }
func (e Missed) String() string        { return fmt.Sprintf("%d event(s) missed", e.Count) }

func suffix(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
