package retirement

import (
	"sync"
	"time"
)

// comingFor is how long somebody is counted on who does not come: what keeps an operation
// that long may keep it for longer.
const comingFor = 6 * time.Second

// coming are the operations that will ask for an eviction soon: those that the desk is
// about to begin, and those that run and have not asked. It outlives the lives of both,
// and is safe for concurrent use; nil knows of none.
type coming struct {
	now func() time.Time

	mu      sync.Mutex
	since   map[string]time.Time
	waiting []chan struct{} // closed when nobody is coming; they carry no value
}

func newComing(now func() time.Time) *coming {
	return &coming{now: now, since: map[string]time.Time{}}
}

// add counts on an operation, and reports whether it did not before.
func (c *coming) add(id string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if since, found := c.since[id]; found && c.fresh(since) {
		return false
	}
	c.since[id] = c.now()
	return true
}

// over counts on an operation no longer: it has asked, or will not.
func (c *coming) over(id string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, id)
	if c.any() {
		return
	}
	for _, w := range c.waiting {
		close(w)
	}
	c.waiting = nil
}

// gathered is closed once nobody is coming. Whoever was counted on for too long is not
// waited for.
func (c *coming) gathered() <-chan struct{} {
	w := make(chan struct{}) // closed once, carries no value
	if c == nil {
		close(w)
		return w
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.any() {
		c.waiting = append(c.waiting, w)
	} else {
		close(w)
	}
	return w
}

func (c *coming) fresh(since time.Time) bool { return c.now().Sub(since) < comingFor }

// any reports whether somebody is coming. It needs the lock.
func (c *coming) any() bool {
	for _, since := range c.since {
		if c.fresh(since) {
			return true
		}
	}
	return false
}
