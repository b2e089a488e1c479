package evict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// Unproved says why it is not proved that nobody is connected. It is
// messages.EvictionUnproved.
type Unproved struct {
	// Doubts are what servers left open.
	Doubts []string
	// Silent are the names of servers that did not list everything, sorted.
	Silent []string
	// Live are the connections that are still there.
	Live []messages.LiveConnection
	// notes is what servers said that refused to drop one.
	notes []string
}

// named is how many of a kind are named one by one.
const named = 5

func (r *run) unproved(swept messages.Swept) *Unproved {
	u := &Unproved{Doubts: swept.Doubts, Live: swept.Connections}
	for _, s := range swept.Servers {
		if !s.Whole {
			u.Silent = append(u.Silent, s.Name)
		}
	}
	slices.Sort(u.Silent)
	u.Silent = slices.Compact(u.Silent)
	for _, c := range swept.Connections {
		if note := r.notes[c.ConnectionRef]; note != "" && !slices.Contains(u.notes, note) {
			u.notes = append(u.notes, note)
		}
	}
	return u
}

// Error names who is left, and where, and which server leaves a doubt.
func (u *Unproved) Error() string { return u.Unwrap().Error() }

// Unwrap is the entry of the catalogue, with what was special about this case.
func (u *Unproved) Unwrap() error {
	parts := slices.Concat(u.left(), u.Doubts, u.notes)
	return messages.EvictionUnproved.Because("%s", strings.Join(parts, "; "))
}

// left says who is connected to which server.
func (u *Unproved) left() []string {
	var parts []string
	for _, c := range u.Live {
		// Both halves of a name are free of dashes.
		part := fmt.Sprintf("%s is still connected to server %s", strings.Replace(c.User, "-", ".", 1), c.ServerName)
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if more := len(parts) - named; more > 0 {
		parts = append(parts[:named], fmt.Sprintf("and %d more", more))
	}
	return parts
}

// Next is the command that leads on; empty where the next try may do.
func (u *Unproved) Next() string {
	switch {
	case len(u.Silent) > 0:
		return "authplane roster forget " + u.Silent[0]
	case len(u.Doubts) > 0:
		return "authplane roster"
	default:
		return ""
	}
}
