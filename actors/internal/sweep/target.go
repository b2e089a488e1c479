package sweep

import (
	"github.com/cotal-ai/authplane/messages"
)

// wanted is a set of targets, so that a sweep for many costs no more than one for
// a single one.
type wanted struct {
	all bool
	// names holds the uids of each name; an empty uid is every life of it.
	names map[string]map[string]bool
	uids  map[string]bool
	users map[string]bool
}

func want(targets []messages.Target) wanted {
	w := wanted{all: len(targets) == 0, names: map[string]map[string]bool{}, uids: map[string]bool{}, users: map[string]bool{}}
	for _, t := range targets {
		if name := t.Principal.Name(); name != "" {
			if w.names[name] == nil {
				w.names[name] = map[string]bool{}
			}
			w.names[name][t.UID] = true
		}
		if t.UID != "" {
			w.uids[t.UID] = true
		}
		if t.User != "" {
			w.users[t.User] = true
		}
	}
	return w
}

// has reports whether a connection is a target's. One that bears the name and does
// not tell which life it is of belongs to every life.
func (w wanted) has(r row) bool {
	if w.all || w.users[r.User] {
		return true
	}
	uid := r.uid()
	if uid != "" && w.uids[uid] {
		return true
	}
	lives, named := w.names[r.User]
	return named && (uid == "" || lives[""] || lives[uid])
}
