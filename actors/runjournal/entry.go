package runjournal

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// Types of the entries that the journal itself has a meaning for. An entry is one of
// them if its member `type` says so; every other entry is the driver's own. Types that
// begin with `run.` are reserved.
const (
	// TypePause says that a step waits for an answer.
	TypePause = "run.pause"
	// TypeSettled says that a pause has its answer.
	TypeSettled = "run.settled"
	// TypeEnded says that the run is over.
	TypeEnded = "run.ended"
)

// Pause is the entry of a step that waits.
type Pause struct {
	Type string `json:"type"`
	// Step names it: 1 to 64 characters of [A-Za-z0-9_-].
	Step string `json:"step"`
	// Token is what an answer must name: 22 to 64 of the same. It is drawn anew for each
	// pause.
	Token string `json:"token"`
}

// Settled is the entry of a pause that has its answer.
type Settled struct {
	Type string `json:"type"`
	Step string `json:"step"`
	// Token is the pause's.
	Token string `json:"token"`
	// Accepted is false for a pause that was given up.
	Accepted bool `json:"accepted"`
}

// Ended is the last entry of a run.
type Ended struct {
	Type string `json:"type"`
	// Outcome is `completed` or `failed`.
	Outcome string `json:"outcome"`
}

// NewPause is a Pause with its type.
func NewPause(step, token string) Pause { return Pause{TypePause, step, token} }

// NewSettled is a Settled with its type.
func NewSettled(step, token string, accepted bool) Settled {
	return Settled{TypeSettled, step, token, accepted}
}

// NewEnded is an Ended with its type.
func NewEnded(outcome string) Ended { return Ended{TypeEnded, outcome} }

// State is what the entries of a run say of it. The zero value is a run that has not
// begun.
type State struct {
	// Pauses is the last pause of each step.
	Pauses map[string]PauseState
	// Outcome is that of a run that has ended; empty before.
	Outcome string
}

// PauseState is where a pause stands.
type PauseState struct {
	Token             string
	Settled, Accepted bool
}

// apply takes one more entry. It refuses what no driver that follows this package could
// have written.
func (s *State) apply(entry json.RawMessage) error {
	if s.Outcome != "" {
		return messages.RunEnded
	}
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(entry, &kind) != nil || !strings.HasPrefix(kind.Type, "run.") {
		return nil // the driver's own
	}
	switch kind.Type {
	case TypePause:
		var p Pause
		if !exactly(entry, &p) || !isName(p.Step, 1) || !isName(p.Token, 22) || s.waits(p.Step) {
			return messages.Malformed.Because("a pause names a step that does not wait, and a token")
		}
		s.set(p.Step, PauseState{Token: p.Token})
	case TypeSettled:
		var p Settled
		if !exactly(entry, &p) || !s.waits(p.Step) && !s.accepted(p.Step) || s.Pauses[p.Step].Token != p.Token {
			return messages.Malformed.Because("only a pause that waits is settled, or an accepted answer amended")
		}
		s.set(p.Step, PauseState{Token: p.Token, Settled: true, Accepted: p.Accepted})
	case TypeEnded:
		var e Ended
		if !exactly(entry, &e) || e.Outcome != "completed" && e.Outcome != "failed" {
			return messages.Malformed.Because("a run ends completed or failed")
		}
		s.Outcome = e.Outcome
	default:
		return messages.Malformed.Because("types that begin with run. are reserved")
	}
	return nil
}

// try reports what apply would, and changes nothing.
func (s *State) try(entry json.RawMessage) error {
	then := s.clone()
	return then.apply(entry)
}

func (s *State) clone() State { return State{Pauses: maps.Clone(s.Pauses), Outcome: s.Outcome} }

func (s *State) set(step string, p PauseState) {
	if s.Pauses == nil {
		s.Pauses = map[string]PauseState{}
	}
	s.Pauses[step] = p
}

func (s *State) waits(step string) bool {
	p, known := s.Pauses[step]
	return known && !p.Settled
}

func (s *State) accepted(step string) bool { return s.Pauses[step].Accepted }

// Pause is the token by which the pause of a step is answered, or, with amend, its
// accepted answer changed. Refused with messages.RunNotWaiting, and RunEnded.
func (s *State) Pause(step string, amend bool) (token string, err error) {
	p, known := s.Pauses[step]
	switch {
	case s.Outcome != "":
		return "", messages.RunEnded
	case !known, !amend && p.Settled, amend && !p.Accepted:
		return "", messages.RunNotWaiting
	}
	return p.Token, nil
}

// isName reports whether s is at least least and at most 64 characters of [A-Za-z0-9_-].
func isName(s string, least int) bool {
	return len(s) >= least && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return r == '.' || !isHolderRune(r) })
}
