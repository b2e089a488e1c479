package controller

import (
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/messages"
)

// Lives of credentials, in whole seconds each.
const (
	// MinStanding and MaxStanding bound how long what stands may live, and DefaultStanding
	// is how long it does where nobody says.
	MinStanding     = 5 * time.Second
	MaxStanding     = 24 * time.Hour
	DefaultStanding = MaxStanding
	// ExecutorLife is how long an executor's lives, or as long as what stands if that is
	// shorter.
	ExecutorLife = 5 * time.Minute
	// SessionLife is the longest that a session's lives.
	SessionLife = 24 * time.Hour
	// RequesterLife is how long one retirement may be asked for.
	RequesterLife = 5 * time.Minute
	// rememberFor is the longest that a request is remembered.
	rememberFor = 2 * time.Minute
)

// Scope is what a person's grant must have, so that he may run controllers.
const Scope = "supervise"

// standing are the kinds of the five users that every controller has.
var standing = [...]messages.ControllerKind{messages.KindSupervisor, messages.KindExecutor, messages.KindServer, messages.KindRecorder, messages.KindLedger}

// Doors are all there are.
var Doors = []messages.ControllerDoor{messages.DoorPrepare, messages.DoorActivate, messages.DoorRenew, messages.DoorSession, messages.DoorRetire}

// kindsOf are the kinds of the credentials that a door gives: these and no others.
func kindsOf(door messages.ControllerDoor) []messages.ControllerKind {
	switch door {
	case messages.DoorPrepare:
		return []messages.ControllerKind{messages.KindSupervisor, messages.KindExecutor}
	case messages.DoorActivate:
		return []messages.ControllerKind{messages.KindServer, messages.KindRecorder, messages.KindLedger}
	case messages.DoorRenew:
		return standing[:]
	case messages.DoorSession:
		return []messages.ControllerKind{messages.KindSession}
	case messages.DoorRetire:
		return []messages.ControllerKind{messages.KindRequester}
	}
	return nil
}

// receipted reports whether a door asks for the receipt.
func receipted(door messages.ControllerDoor) bool {
	return door != messages.DoorPrepare && door != messages.DoorActivate
}

// keyOf is the user of a kind.
func keyOf(r messages.ControllerRequest, kind messages.ControllerKind) string {
	switch kind {
	case messages.KindSupervisor:
		return r.Keys.Supervisor
	case messages.KindExecutor:
		return r.Keys.Executor
	case messages.KindServer:
		return r.Keys.Server
	case messages.KindRecorder:
		return r.Keys.Recorder
	case messages.KindLedger:
		return r.Keys.Ledger
	case messages.KindSession:
		return r.Session.User
	default:
		return r.Target.User
	}
}

// Principal is whose instance a controller is that somebody of this owner runs: its host
// registers it as this one, and as no other may it come by the doors.
func Principal(owner, instance string) messages.Principal {
	return messages.Principal{Owner: owner, Actor: "ctl_" + instance}
}

// holderOf is who holds a credential of a kind.
func holderOf(instance messages.Principal, kind messages.ControllerKind) messages.Principal {
	return messages.Principal{Owner: instance.Owner, Actor: instance.Actor + "_" + string(kind)}
}

// IsCredential reports whether an id names a credential that a door gave: one that
// servers believe until it runs out, whatever becomes of its row.
func IsCredential(id string) bool {
	parts := strings.Split(id, "-")
	return len(parts) == 3 && nkeys.IsValidPublicUserKey(parts[1])
}
