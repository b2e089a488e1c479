package controller

import (
	"slices"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Check refuses a request that could never be answered, whoever asks: with
// messages.Malformed.
func Check(r messages.ControllerRequest) error {
	if !slices.Contains(Doors, r.Door) {
		return messages.Malformed.Because("there is no such door")
	}
	if err := checkPlace(r.Space, r.Actor, r.Endpoint, r.Instance); err != nil {
		return err
	}
	if err := checkID(r.ID); err != nil {
		return err
	}
	if err := checkBelongings(r); err != nil {
		return err
	}
	switch r.Door {
	case messages.DoorSession:
		return checkKeys(r.Keys, r.Session.User)
	case messages.DoorRetire:
		return checkKeys(r.Keys, r.Target.User)
	}
	return checkKeys(r.Keys)
}

// checkPlace refuses what names no holder's actor or no instance that a controller runs.
func checkPlace(space, actor, endpoint, instance string) error {
	if err := names.CheckSpace(space); err != nil {
		return err
	}
	if err := names.CheckActor(actor); err != nil {
		return err
	}
	if err := ledger.CheckInstance(endpoint, instance); err != nil {
		return err
	}
	if !isToken(endpoint) {
		return messages.Malformed.Because("an endpoint is one token of [a-z0-9_-]")
	}
	return nil
}

func checkID(id string) error {
	if !ledger.IsRequestID(id) {
		return messages.Malformed.Because("request_id is 22 to 64 characters of [A-Za-z0-9_-]")
	}
	return nil
}

// checkBelongings refuses what belongs to another door.
func checkBelongings(r messages.ControllerRequest) error {
	session, target := r.Session != (messages.ControllerSession{}), r.Target != (messages.ControllerTarget{})
	switch {
	case receipted(r.Door) == r.Receipt.IsZero():
		return messages.Malformed.Because("every door after activate takes a receipt, and no other")
	case (r.Door == messages.DoorActivate) != (len(r.Commands) > 0):
		return messages.Malformed.Because("activate takes commands, 1 to %d, and no other door", ledger.MaxCommands)
	case (r.Door == messages.DoorSession) != session:
		return messages.Malformed.Because("session takes a session, and no other door")
	case (r.Door == messages.DoorRetire) != target:
		return messages.Malformed.Because("retire takes a target, and no other door")
	case session && !isToken(r.Session.ID):
		return messages.Malformed.Because("a session is one token of [a-z0-9_-]")
	case target:
		return checkTarget(r.Target)
	}
	return checkCommands(r.Commands)
}

func checkCommands(commands []string) error {
	if len(commands) > ledger.MaxCommands {
		return messages.Malformed.Because("there are at most %d commands", ledger.MaxCommands)
	}
	for i, command := range commands {
		if !isToken(command) || i > 0 && commands[i-1] >= command {
			return messages.Malformed.Because("commands are tokens of [a-z0-9_-], each once")
		}
	}
	return nil
}

func checkTarget(t messages.ControllerTarget) error {
	if err := names.CheckPrincipal(t.Principal); err != nil {
		return err
	}
	if err := names.CheckUID(t.UID); err != nil {
		return err
	}
	if t.Operation != ledger.OperationOf(t.UID) {
		return messages.Malformed.Because("op_id is not that of the retirement of this incarnation")
	}
	return nil
}

// checkKeys refuses keys that are no user's, or serve twice: a controller's, and those of
// others that are asked for.
func checkKeys(keys messages.ControllerKeys, others ...string) error {
	users := append([]string{keys.Supervisor, keys.Executor, keys.Server, keys.Recorder, keys.Ledger}, others...)
	slices.Sort(users)
	for i, user := range users {
		if !nkeys.IsValidPublicUserKey(user) {
			return messages.Malformed.Because("a key is the public key of a user, U and 55 more characters")
		}
		if i > 0 && users[i-1] == user {
			return messages.Malformed.Because("every user has a key of its own")
		}
	}
	return nil
}

// isToken reports whether s is 1 to 64 characters of [a-z0-9_-].
func isToken(s string) bool {
	const most = 64
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != "" && len(s) <= most
}
