package supervisor

import (
	"sync"
	"time"
)

// A Resource is something with a life of its own that must be known to have ended:
// a connection, a listener, a process.
type Resource interface {
	// Label names it, for inventories and errors. It is never a secret.
	Label() string
	// Sever cuts it abruptly. It may be called more than once and from any goroutine.
	Sever()
	// Ended is closed when it is really gone.
	Ended() <-chan struct{}
}

const (
	keptHoldings = 256  // ended resources that are remembered one by one
	keptLabels   = 1024 // labels that are counted apart; further ones share OtherLabels
)

// OtherLabels is the label under which Counts sums what exceeds its bound.
const OtherLabels = "other"

// Custody is the inventory of every resource that was ever held in a tree. Its
// memory is bounded: what has ended is kept as a count for each label, and the
// last few one by one.
type Custody struct {
	clock Clock
	event func(path string, generation uint64, label string, ended bool)

	mu       sync.Mutex
	open     []*held
	recent   []Holding
	counts   map[string]*Count
	sealed   bool
	complete chan struct{} // closed once sealed and nothing is open
}

// A Holding is one resource in the inventory.
type Holding struct {
	Label      string
	Path       string // who held it; empty for the tree itself
	Generation uint64
	Held       time.Time
	Ended      bool
	EndedAt    time.Time
}

// A Count sums up the resources of one label.
type Count struct {
	Held  uint64 // ever
	Ended uint64
}

type held struct {
	Holding
	resource Resource
	told     chan struct{} // closed when its end was told
}

func (h *held) over() bool {
	select {
	case <-h.resource.Ended():
		return true
	default:
		return false
	}
}

func newCustody(clock Clock, event func(string, uint64, string, bool)) *Custody {
	return &Custody{
		clock:    clock,
		event:    event,
		counts:   map[string]*Count{},
		complete: make(chan struct{}),
	}
}

// Hold takes a resource that belongs to no life. It is severed when the tree
// closes. After that Hold severs it at once and returns ErrClosing.
func (c *Custody) Hold(r Resource) error { return c.hold("", 0, r) }

func (c *Custody) hold(path string, generation uint64, r Resource) error {
	h := &held{resource: r, told: make(chan struct{}), Holding: Holding{
		Label: r.Label(), Path: path, Generation: generation, Held: c.clock.Now(),
	}}
	c.mu.Lock()
	if c.sealed {
		c.mu.Unlock()
		sever(r)
		return ErrClosing
	}
	c.open = append(c.open, h)
	c.count(h.Label).Held++
	c.mu.Unlock()
	c.event(path, generation, h.Label, false)
	go c.await(h) // ends with the resource; Complete waits for it
	return nil
}

func (c *Custody) await(h *held) {
	<-h.resource.Ended()
	c.event(h.Path, h.Generation, h.Label, true)
	close(h.told)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.open {
		if other == h {
			c.open = append(c.open[:i], c.open[i+1:]...)
			break
		}
	}
	h.Ended, h.EndedAt = true, c.clock.Now()
	c.count(h.Label).Ended++
	if len(c.recent) == keptHoldings {
		c.recent = c.recent[1:]
	}
	c.recent = append(c.recent, h.Holding)
	c.settle()
}

// seal says that nothing will be held any more.
func (c *Custody) seal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.sealed {
		c.sealed = true
		c.settle()
	}
}

func (c *Custody) settle() {
	if c.sealed && len(c.open) == 0 {
		select {
		case <-c.complete:
		default:
			close(c.complete)
		}
	}
}

func (c *Custody) count(label string) *Count {
	n := c.counts[label]
	if n == nil {
		if len(c.counts) >= keptLabels {
			label = OtherLabels
			if n = c.counts[label]; n != nil {
				return n
			}
		}
		n = &Count{}
		c.counts[label] = n
	}
	return n
}

// Complete is closed when the tree has closed and everything ever held has ended.
func (c *Custody) Complete() <-chan struct{} { return c.complete }

// Holdings lists what is held now, oldest first, after the last few that ended.
func (c *Custody) Holdings() []Holding {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := append([]Holding(nil), c.recent...)
	for _, h := range c.open {
		now := h.Holding
		if h.over() { // and not taken note of yet
			now.Ended, now.EndedAt = true, c.clock.Now()
		}
		out = append(out, now)
	}
	return out
}

// Open lists what has not ended, oldest first.
func (c *Custody) Open() []Holding {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Holding, 0, len(c.open))
	for _, h := range c.open {
		if !h.over() {
			out = append(out, h.Holding)
		}
	}
	return out
}

// Resources returns what has not ended, oldest first. They stay their holders'.
func (c *Custody) Resources() []Resource { return c.all() }

// Counts sums up every resource ever held, by label.
func (c *Custody) Counts() map[string]Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]Count, len(c.counts))
	for label, n := range c.counts {
		out[label] = *n
	}
	return out
}

// of returns the resources of one life that have not ended.
func (c *Custody) of(path string, generation uint64) []Resource {
	return c.pick(func(h *held) bool { return h.Path == path && h.Generation == generation })
}

// told returns a channel for each resource of one life whose end is yet to be told.
func (c *Custody) told(path string, generation uint64) []<-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []<-chan struct{}
	for _, h := range c.open {
		if h.Path == path && h.Generation == generation {
			out = append(out, h.told)
		}
	}
	return out
}

func (c *Custody) all() []Resource { return c.pick(func(*held) bool { return true }) }

func (c *Custody) pick(want func(*held) bool) []Resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Resource
	for _, h := range c.open {
		if want(h) && !h.over() {
			out = append(out, h.resource)
		}
	}
	return out
}

// sever cuts r and survives a panic in it.
func sever(r Resource) {
	defer func() { _ = recover() }()
	r.Sever()
}
