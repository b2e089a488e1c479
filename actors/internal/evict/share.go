package evict

import (
	"slices"

	"github.com/cotal-ai/authplane/messages"
)

// Of is what an eviction of many found out about one of its targets.
func (o Outcome) Of(t messages.Target) Outcome {
	o.Met, o.Evicted = 0, 0
	for _, c := range o.seen {
		if !belongs(c, t) {
			continue
		}
		o.Met++
		if o.dropped[c.ConnectionRef] {
			o.Evicted++
		}
	}
	o.Vacuous = o.Eviction != "" && o.Met == 0 && !o.blind
	return o
}

// Concerns reports whether a connection that is still there is the target's.
func (u *Unproved) Concerns(t messages.Target) bool {
	return slices.ContainsFunc(u.Live, func(c messages.LiveConnection) bool { return belongs(c, t) })
}

// belongs reports whether a connection is a target's, as a sweep for it would find.
func belongs(c messages.LiveConnection, t messages.Target) bool {
	switch {
	case t.User != "" && c.User == t.User, t.UID != "" && c.UID == t.UID:
		return true
	case t.Principal.IsZero() || c.User != t.Principal.Name():
		return false
	}
	return c.UID == "" || t.UID == ""
}
