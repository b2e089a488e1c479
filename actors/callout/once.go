package callout

import "sync"

// Once has each request worked on by one connection of this process, where all of
// them hear it. The others may be those of other responders, or a connection and the
// one that takes its place. The zero value has met no request.
type Once struct {
	mu   sync.Mutex
	met  map[string]bool
	ring []string // those in met, of which next is the oldest once there are maxMet
	next int
}

// maxMet bounds the requests that are remembered. A server sends them to every
// connection at the same time, so that few lie between the first and the last.
const maxMet = 8192

// first reports whether a request, named by its reply subject, was not met before.
func (o *Once) first(request string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.met[request] {
		return false
	}
	if o.met == nil {
		o.met = map[string]bool{}
	}
	o.met[request] = true
	if len(o.ring) < maxMet {
		o.ring = append(o.ring, request)
		return true
	}
	delete(o.met, o.ring[o.next])
	o.ring[o.next] = request
	o.next = (o.next + 1) % maxMet
	return true
}
