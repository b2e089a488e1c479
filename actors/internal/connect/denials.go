package connect

import (
	"sync"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// MaxDenials is how many denials are kept.
const MaxDenials = 1000

// NewDenial describes a connect that was not admitted. The principal is that of a
// verified bearer, the zero value if it did not come to that: what an unverified
// proof says of itself is not repeated.
func NewDenial(id string, p messages.Principal, why error, at time.Time) messages.Denial {
	entry := messages.Describe(why)
	return messages.Denial{
		ID: id, At: at, Kind: KindOf(why), Code: entry.Code, Reason: entry.Reason,
		Principal: p.String(), Remedy: remedy(entry, p),
	}
}

// remedy says what the operator should know, and the next command.
func remedy(entry messages.Error, p messages.Principal) string {
	said := entry.Operator
	if said == "" {
		said = entry.Message
	}
	next := entry.NextFor(p)
	if next == "" {
		return said
	}
	return said + "; next: " + next
}

// Denials keeps the last MaxDenials denials.
type Denials struct {
	mu   sync.Mutex
	ring []messages.Denial
	next int // where the oldest stands once the ring is full
}

// Record keeps one more. It takes the place of the oldest when there are MaxDenials.
func (d *Denials) Record(denial messages.Denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.ring) < MaxDenials {
		d.ring = append(d.ring, denial)
		return
	}
	d.ring[d.next] = denial
	d.next = (d.next + 1) % MaxDenials
}

// List returns what is kept, newest first. The caller owns the slice.
func (d *Denials) List() []messages.Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]messages.Denial, 0, len(d.ring))
	for i := range len(d.ring) {
		out = append(out, d.ring[d.newest(i)])
	}
	return out
}

// Find looks a denial up by the id of its request.
func (d *Denials) Find(id string) (messages.Denial, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range len(d.ring) {
		if denial := d.ring[d.newest(i)]; denial.ID == id {
			return denial, true
		}
	}
	return messages.Denial{}, false
}

// newest is the place of the i-th newest.
func (d *Denials) newest(i int) int {
	n := len(d.ring)
	return (d.next + 2*n - 1 - i) % n
}
