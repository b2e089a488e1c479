package presence

import (
	"cmp"
	"slices"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// Times by which processes watch each other.
const (
	// sayEvery is how often a process says that it lives.
	sayEvery = 250 * time.Millisecond
	// fresh is how recently a word of one's own must have been sent that came back,
	// for silence of others to mean anything.
	fresh = 500 * time.Millisecond
	// silence is how long a peer may say nothing.
	silence = time.Second
	// unheard is how long a peer that is expected may say nothing at all: it may just
	// be starting.
	unheard = 5 * time.Second
	// kickEvery is how long a peer is left alone once it was kicked.
	kickEvery = 10 * time.Second
	// askEvery is how long to wait when nobody could be asked to kick it.
	askEvery = 500 * time.Millisecond
)

// maxPeers bounds the processes that are watched; further ones are not.
const maxPeers = 64

// maxSent bounds the words whose return is awaited; with fresh and sayEvery as they
// are, older ones are of no use.
const maxSent = 8

// Table is what one process knows of who lives. Its methods are called one at a
// time.
type Table struct {
	self string
	life string
	now  func() time.Time

	count uint64
	sent  map[uint64]time.Time // when recent words were sent
	// echoed is when the latest of the own words that came back was sent, and
	// hearing since when they have come back without a gap; zero before the first.
	echoed, hearing time.Time
	leaving         bool
	own             []messages.ConnectionRef
	peers           map[string]*peer
}

// peer is another process.
type peer struct {
	// life and count are of its latest word: an older one may still arrive over
	// another connection.
	life        string
	count       uint64
	heard       time.Time // zero if it never was
	connections []messages.ConnectionRef
	kicked      time.Time // zero if it never was
	// notBefore is when it may be kicked again at the earliest.
	notBefore time.Time
	// settled says that nothing is left to drop until it speaks again.
	settled bool
}

// NewTable makes the table of the process self. life is a name for this table that
// no other has; now is the clock.
func NewTable(self, life string, now func() time.Time) *Table {
	return &Table{self: self, life: life, now: now, sent: map[uint64]time.Time{}, peers: map[string]*peer{}}
}

// Say returns the next word, with the connections this process has now, for
// publishing at once. After Leave there is none: nil.
func (t *Table) Say(connections []messages.ConnectionRef) ([]byte, error) {
	if t.leaving {
		return nil, nil
	}
	t.own = connections[:min(len(connections), maxConnections)]
	return t.next(false)
}

// Leave returns the last word: nobody shall take silence for standing still. Later
// there is none: nil.
func (t *Table) Leave() ([]byte, error) {
	if t.leaving {
		return nil, nil
	}
	t.leaving = true
	return t.next(true)
}

func (t *Table) next(leaving bool) ([]byte, error) {
	t.count++
	t.sent[t.count] = t.now()
	delete(t.sent, t.count-maxSent)
	return word{Version: version, Life: t.life, Count: t.count, Connections: t.own, Leaving: leaving}.encode()
}

// Hear takes a word that instance said. What is not one is ignored.
func (t *Table) Hear(instance string, data []byte) {
	w, err := parse(data)
	switch {
	case err != nil:
	case instance == t.self:
		t.hearSelf(w)
	default:
		t.hearPeer(instance, w)
	}
}

// hearSelf notes how recent a word has come back. Where the words in between are
// missing, others may have been missed as well: their silence counts from now.
func (t *Table) hearSelf(w word) {
	sent, known := t.sent[w.Count]
	if w.Life != t.life || !known || sent.Before(t.echoed) {
		return
	}
	if t.echoed.IsZero() || sent.Sub(t.echoed) > fresh {
		t.hearing = t.now()
	}
	t.echoed = sent
}

// Rejoin says that words may have been missed: the connection is a new one.
func (t *Table) Rejoin() { t.hearing = t.now() }

// hearPeer notes what a peer says. A peer that says goodbye stays in the table for
// a while, with nothing to kick, so that it is not forgotten when it was kicked.
func (t *Table) hearPeer(instance string, w word) {
	p := t.peers[instance]
	switch {
	case p == nil && len(t.peers) >= maxPeers:
		return
	case p == nil:
		p = &peer{}
		t.peers[instance] = p
	case w.Life == p.life && w.Count <= p.count:
		return
	case p.heard.IsZero() && p.kicked.IsZero():
		p.notBefore = time.Time{} // it was expected, and has come
	}
	p.life, p.count, p.heard = w.Life, w.Count, t.now()
	p.connections, p.settled = w.Connections, w.Leaving
	if w.Leaving {
		p.connections = nil
	}
}

// Expect says that a peer should be there, with these connections at least, as the
// claim on the plane tells; the empty name says that nobody should. A peer that stands
// still since before this process listened would otherwise never be missed.
func (t *Table) Expect(instance string, connections []messages.ConnectionRef) {
	for name, p := range t.peers {
		if name != instance && p.heard.IsZero() && !p.settled {
			delete(t.peers, name) // expected no more
		}
	}
	if instance == "" || instance == t.self || t.peers[instance] != nil || len(t.peers) >= maxPeers {
		return
	}
	t.peers[instance] = &peer{connections: connections, notBefore: t.now().Add(unheard)}
}

// Kick is a peer that fell silent, and what it has.
type Kick struct {
	Instance    string
	Connections []messages.ConnectionRef
	// Unheard says that it was expected and never spoke to this process. Its words may
	// have been kept from it, where those of a peer that was heard are missed.
	Unheard bool
}

// Due returns the peers to kick now. Each counts as kicked from now on, and as
// gone; Silent and Unasked take that back.
func (t *Table) Due() []Kick {
	now := t.now()
	t.forget(now)
	if t.leaving || t.echoed.IsZero() || now.Sub(t.echoed) > fresh {
		return nil
	}
	var due []Kick
	for instance, p := range t.peers {
		if p.settled || now.Sub(later(p.heard, t.hearing)) < silence || now.Before(p.notBefore) {
			continue
		}
		p.kicked, p.notBefore, p.settled = now, now.Add(kickEvery), true
		if connections := t.foreign(p.connections); len(connections) > 0 {
			due = append(due, Kick{Instance: instance, Connections: connections, Unheard: p.heard.IsZero()})
		}
	}
	slices.SortFunc(due, func(a, b Kick) int { return cmp.Compare(a.Instance, b.Instance) })
	return due
}

// foreign leaves out what is this process's own, whatever a peer says it has.
func (t *Table) foreign(connections []messages.ConnectionRef) []messages.ConnectionRef {
	return slices.DeleteFunc(slices.Clone(connections), func(c messages.ConnectionRef) bool { return slices.Contains(t.own, c) })
}

// Silent says that a server did not answer a kick, so that something of the peer
// may be left: it is due again in its time, unless it speaks.
func (t *Table) Silent(instance string) {
	if p := t.peers[instance]; p != nil {
		p.settled = len(p.connections) == 0
	}
}

// Unasked says that nobody could be asked to kick a peer: it was not kicked, and is
// due again soon.
func (t *Table) Unasked(instance string) {
	if p := t.peers[instance]; p != nil {
		p.settled = len(p.connections) == 0
		p.kicked, p.notBefore = time.Time{}, t.now().Add(askEvery)
	}
}

// Spared says that a peer was not kicked, since nobody can be: it is due no more until
// it speaks and falls silent again.
func (t *Table) Spared(instance string) {
	if p := t.peers[instance]; p != nil {
		p.kicked = time.Time{}
	}
}

// Heard reports whether a peer has spoken.
func (t *Table) Heard(instance string) bool {
	p := t.peers[instance]
	return p != nil && !p.heard.IsZero()
}

// forget drops peers of whom nothing is left to remember.
func (t *Table) forget(now time.Time) {
	for instance, p := range t.peers {
		if p.settled && now.Sub(later(p.heard, p.kicked)) >= kickEvery {
			delete(t.peers, instance)
		}
	}
}

// Peers lists who is heard, this process first if it hears itself.
func (t *Table) Peers() []messages.Peer {
	var out []messages.Peer
	if !t.echoed.IsZero() {
		out = append(out, messages.Peer{Instance: t.self, Self: true, Heard: t.echoed, Connections: slices.Clone(t.own)})
	}
	for instance, p := range t.peers {
		if p.heard.IsZero() {
			continue
		}
		out = append(out, messages.Peer{Instance: instance, Heard: p.heard, Connections: slices.Clone(p.connections), Kicked: p.kicked})
	}
	slices.SortFunc(out, func(a, b messages.Peer) int { return cmp.Compare(a.Instance, b.Instance) })
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
