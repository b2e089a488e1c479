package retirement

import (
	"slices"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/evict"
)

// line is who has asked for an eviction and is not swept for yet. It is safe for
// concurrent use.
type line struct {
	mu      sync.Mutex
	waiting []errand // in the order in which they came
}

func (l *line) add(e errand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, e)
}

// take is everybody who waits and was denied by then; a zero time is any.
func (l *line) take(by time.Time) (taken []errand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(e errand) bool {
		if !by.IsZero() && e.denied.After(by) {
			return false
		}
		taken = append(taken, e)
		return true
	})
	return taken
}

// party is everybody whom one eviction is for. Only the goroutine that runs it uses it.
type party struct {
	broom   *broom
	errands []errand
}

// Gathered and Join are evict.Company.
func (p *party) Gathered() <-chan struct{} { return p.broom.config.coming.gathered() }

func (p *party) Join(by time.Time) (joiners []evict.Joiner) {
	for _, e := range p.broom.line.take(by) {
		p.errands = append(p.errands, e)
		joiners = append(joiners, evict.Joiner{Target: e.target, Frozen: e.denied, Refuse: func(err error) { p.refuse(e, err) }})
	}
	return joiners
}

func (p *party) refuse(e errand, err error) {
	p.errands = slices.DeleteFunc(p.errands, func(other errand) bool { return other.to == e.to })
	p.broom.life.Reply(e.to, err)
}
