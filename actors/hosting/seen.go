package hosting

import (
	"sync"
	"time"
)

// maxSeen bounds what is remembered. Whoever is forgotten is waited for anew.
const maxSeen = 1024

// seen remembers since when this process has known of something that does not change
// before it is over. The zero value is ready.
type seen struct {
	mu sync.Mutex
	at map[string]time.Time
}

// since is when what was first asked for: now, the first time.
func (s *seen) since(what string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := s.at[what]; known {
		return at
	}
	if s.at == nil || len(s.at) >= maxSeen {
		s.at = map[string]time.Time{}
	}
	now := time.Now()
	s.at[what] = now
	return now
}
