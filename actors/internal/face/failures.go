package face

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// Limits of failed proofs and failed capabilities, each with a budget of its own.
const (
	// FailuresAllowed is how often one peer may fail within FailureWindow before
	// its failures are answered with 429. A valid credential always passes.
	FailuresAllowed = 30
	// FailureWindow is the rolling window in which failures count.
	FailureWindow = time.Minute
	// maxPeers bounds the memory: the peer that failed longest ago is forgotten.
	maxPeers = 4096
)

// failures counts how often each peer failed lately. A peer is an IPv4 address or
// an IPv6 /64, since whoever holds one address of a /64 holds them all.
type failures struct {
	now   func() time.Time
	mu    sync.Mutex
	peers map[netip.Prefix]*list.Element
	// recent has the peer that failed last in front.
	recent *list.List
}

type failing struct {
	peer netip.Prefix
	// at is a ring of the last FailuresAllowed failures; next is its oldest place.
	at   [FailuresAllowed]time.Time
	next int
}

func newFailures(now func() time.Time) *failures {
	return &failures{now: now, peers: map[netip.Prefix]*list.Element{}, recent: list.New()}
}

// count records a failure. It returns zero while the peer is within its budget,
// and otherwise how long it should stay away.
func (f *failures) count(remote string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	p := f.peer(peerOf(remote))
	if wait := p.at[p.next].Add(FailureWindow).Sub(now); wait > 0 {
		return wait
	}
	p.at[p.next] = now
	p.next = (p.next + 1) % FailuresAllowed
	return 0
}

func (f *failures) peer(peer netip.Prefix) *failing {
	if element, known := f.peers[peer]; known {
		f.recent.MoveToFront(element)
		return element.Value.(*failing)
	}
	if f.recent.Len() == maxPeers {
		oldest := f.recent.Remove(f.recent.Back()).(*failing)
		delete(f.peers, oldest.peer)
	}
	p := &failing{peer: peer}
	f.peers[peer] = f.recent.PushFront(p)
	return p
}

// peerOf is the peer of an address in host:port form; every address that cannot
// be read is one and the same peer.
func peerOf(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	address := at.Addr().Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	peer, _ := address.Prefix(bits) // bits is within the address by construction
	return peer
}
