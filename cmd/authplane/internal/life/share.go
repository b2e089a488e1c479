package life

import (
	"slices"
	"sync"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Share gives each of n services of one process a Manager of its own. The manager
// behind them hears of one service: it is ready once none of them starts any more and
// one is up, it stops when none is left, and it lives while all that are up do. A
// service that never comes up must say Stopping, or it is waited for.
func (m Manager) Share(n int) []Manager {
	s := &shared{manager: m, parts: make([]part, n)}
	managers := make([]Manager, n)
	for i := range managers {
		managers[i] = Manager{every: m.every, tell: func(state string) { s.hear(i, state) }}
	}
	return managers
}

// shared puts together what several services tell their manager.
type shared struct {
	manager Manager

	mu       sync.Mutex
	parts    []part
	ready    bool // was told
	stopping bool // was told
}

// part is how far one service has come.
type part struct {
	phase phase
	lives bool // it gave a sign since the last one that was passed on
}

type phase int

const (
	starting phase = iota
	up
	over
)

func (s *shared) hear(i int, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case daemon.SdNotifyReady:
		s.parts[i].phase = up
	case daemon.SdNotifyStopping:
		s.parts[i].phase = over
	case daemon.SdNotifyWatchdog:
		s.parts[i].lives = true
	default: // a plea for patience is nothing to a manager whose service runs
		if !s.ready || s.stopping {
			s.manager.tell(state)
		}
		return
	}
	s.pass()
}

// pass tells the manager what has come true.
func (s *shared) pass() {
	some := func(in phase) bool {
		return slices.ContainsFunc(s.parts, func(p part) bool { return p.phase == in })
	}
	switch {
	case some(starting):
	case !some(up):
		if !s.stopping {
			s.stopping = true
			s.manager.Stopping()
		}
	case !s.ready:
		s.ready = true
		s.manager.Ready()
	case !slices.ContainsFunc(s.parts, func(p part) bool { return p.phase == up && !p.lives }):
		for i := range s.parts {
			s.parts[i].lives = false
		}
		s.manager.Alive()
	}
}
