package evict_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/messages"
)

// plant is servers that are not there: they keep the promises of evict.Servers and
// none besides. Answers are lost and late, kicks fail, servers stand still, stop, come
// back under another id, let in whoever was decided before the freeze until their time
// is over, and list him a little later.
type plant struct {
	dice    *rand.Rand
	servers []*machine
	next    uint64
	frozen  time.Time
	pending []arrival
	// lost says that connections ended with their server.
	lost bool
	// joiners may join yet; newest is when the last one was frozen who did.
	joiners int
	newest  time.Time
}

// Gathered and Join are evict.Company: others come, who are connected and may be let in
// late, and are expected or not.
func (p *plant) Gathered() <-chan struct{} {
	c := make(chan struct{})
	if !p.chance(3) {
		close(c)
	}
	return c
}

func (p *plant) Join(by time.Time) (joined []evict.Joiner) {
	for ; p.joiners > 0 && p.chance(2); p.joiners-- {
		frozen := time.Now().Add(-time.Duration(p.dice.IntN(500)) * time.Millisecond)
		if frozen.After(by) {
			return joined
		}
		m := p.servers[p.dice.IntN(len(p.servers))]
		if !m.stopped {
			p.join(m, frozen)
			late := frozen.Add(m.timeout - time.Duration(1+p.dice.IntN(20))*time.Millisecond)
			p.pending = append(p.pending, arrival{late, m})
		}
		if frozen.After(p.newest) {
			p.newest = frozen
		}
		joined = append(joined, evict.Joiner{Target: target(2 + p.joiners), Frozen: frozen})
	}
	return joined
}

// arrival is somebody who comes in late.
type arrival struct {
	at time.Time
	m  *machine
}

// machine is one server.
type machine struct {
	name    string
	run     int
	away    bool // it answers nobody, and keeps whom it has
	stopped bool
	timeout time.Duration
	// has are the target's connections, and when the server comes to list each.
	has map[uint64]time.Time
}

func (m *machine) id() string { return fmt.Sprintf("%s/%d", m.name, m.run) }

// chance is true in one of n cases.
func (p *plant) chance(n int) bool { return p.dice.IntN(n) == 0 }

func (p *plant) join(m *machine, at time.Time) {
	p.next++
	m.has[p.next] = at.Add(time.Duration(p.dice.IntN(170)) * time.Millisecond)
}

// late lets somebody in who was read before the freeze, at a time when his server
// still bears it.
func (p *plant) late() {
	m := p.servers[p.dice.IntN(len(p.servers))]
	after := time.Duration(p.dice.Int64N(int64(m.timeout)))
	if p.chance(2) {
		after = m.timeout - time.Duration(1+p.dice.IntN(20))*time.Millisecond
	}
	p.pending = append(p.pending, arrival{p.frozen.Add(after), m})
}

// pass lets time pass, and whoever comes in meanwhile.
func (p *plant) pass(d time.Duration) {
	<-time.After(d)
	p.pending = slices.DeleteFunc(p.pending, func(a arrival) bool {
		if a.at.After(time.Now()) {
			return false
		}
		p.join(a.m, a.at)
		return true
	})
}

// happen changes something that has nothing to do with the eviction.
func (p *plant) happen() {
	m := p.servers[p.dice.IntN(len(p.servers))]
	switch p.dice.IntN(12) {
	case 0:
		m.away = true
	case 1, 2, 3:
		m.away = false
	case 4:
		p.lost = p.lost || len(m.has) > 0
		m.stopped, m.has = true, map[uint64]time.Time{}
		p.pending = slices.DeleteFunc(p.pending, func(a arrival) bool { return a.m == m })
	case 5, 6:
		if m.stopped {
			m.stopped = false
			m.run++
		}
	}
}

// answers reports whether a server does, this time.
func (p *plant) answers(m *machine) bool { return !m.away && !m.stopped && !p.chance(12) }

func (p *plant) Observe(ctx context.Context, known []string) (messages.Roster, error) {
	p.pass(time.Duration(p.dice.IntN(50)) * time.Millisecond)
	var r messages.Roster
	for _, m := range p.servers {
		if p.answers(m) {
			server := messages.Server{Name: m.name, ID: m.id(), Cluster: "c", Answered: true, AuthTimeout: m.timeout}
			if p.chance(8) {
				server.Answered, server.AuthTimeout = false, 0
				r.Doubts = append(r.Doubts, m.name+" answers only in part")
			}
			r.Servers = append(r.Servers, server)
		} else if slices.Contains(known, m.name) {
			r.Servers = append(r.Servers, messages.Server{Name: m.name})
			r.Doubts = append(r.Doubts, m.name+" is missing")
		} else {
			r.Doubts = append(r.Doubts, "somebody is missing") // a server is always counted by somebody
		}
	}
	if len(r.Servers) == 0 {
		return r, messages.BrokerAway
	}
	return r, nil
}

func (p *plant) Sweep(ctx context.Context, which messages.SweepConnections) (messages.Swept, error) {
	var out messages.Swept
	if p.chance(40) {
		return out, messages.ActorAway
	}
	p.happen()
	for _, m := range p.servers {
		p.pass(time.Duration(p.dice.IntN(20)) * time.Millisecond) // pages are not of one moment
		switch {
		case !p.answers(m):
			out.Servers = append(out.Servers, messages.SweptServer{Name: m.name})
			out.Doubts = append(out.Doubts, m.name+" does not answer")
			continue
		case p.chance(30):
			out.Servers = append(out.Servers, messages.SweptServer{Name: m.name, ID: m.id()})
			out.Doubts = append(out.Doubts, m.name+" answers twice")
			continue
		}
		out.Servers = append(out.Servers, messages.SweptServer{Name: m.name, ID: m.id(), Whole: true})
		for cid, since := range m.has {
			if since.After(time.Now()) {
				continue
			}
			out.Connections = append(out.Connections, messages.LiveConnection{ServerName: m.name, User: "u_x-laptop",
				ConnectionRef: messages.ConnectionRef{ServerID: m.id(), ClientID: cid}})
		}
	}
	return out, nil
}

func (p *plant) Kick(ctx context.Context, connections []messages.ConnectionRef) ([]messages.KickResult, error) {
	if p.chance(40) {
		return nil, messages.BrokerAway
	}
	p.pass(time.Duration(p.dice.IntN(20)) * time.Millisecond)
	var out []messages.KickResult
	for _, c := range connections {
		r := messages.KickResult{ConnectionRef: c, Outcome: messages.KickNoServer}
		for _, m := range p.servers {
			if m.id() != c.ServerID || m.stopped {
				continue
			}
			switch {
			case m.away:
				r.Outcome = messages.KickSilent
			case p.chance(6):
				r.Outcome, r.Note = messages.KickRefused, "not now"
			case m.has[c.ClientID].IsZero():
				r.Outcome = messages.KickAbsent
			default:
				delete(m.has, c.ClientID)
				r.Outcome = messages.KickDone
				if p.chance(6) {
					r.Outcome = messages.KickSilent
				}
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// contradicts says what is wrong with a proof, if anything is.
func (p *plant) contradicts(out evict.Outcome, overlooked bool) string {
	if len(out.Servers) != len(p.servers) || out.Eviction != messages.EvictionSwept || out.Vacuous && out.Met > 0 || overlooked && !p.lost {
		return fmt.Sprintf("of %d servers it says %+v", len(p.servers), out)
	}
	for _, when := range []time.Duration{0, time.Minute} { // whoever comes late has come by then
		p.pass(when)
		for _, m := range p.servers {
			if len(m.has) > 0 {
				return fmt.Sprintf("proved gone, and after %v there are %d on %s", when, len(m.has), m.name)
			}
		}
	}
	return ""
}

// Whatever servers do, nobody is gone while one is left, and nobody comes after.
func TestNobodyIsGoneWhileOneIsLeft(t *testing.T) {
	proved, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		game := game{
			seed:    rapid.Uint64().Draw(rt, "seed"),
			size:    rapid.IntRange(1, 4).Draw(rt, "servers"),
			early:   rapid.IntRange(0, 6).Draw(rt, "connected"),
			late:    rapid.IntRange(0, 4).Draw(rt, "late"),
			resumed: rapid.Bool().Draw(rt, "resumed"),
			joiners: rapid.IntRange(0, 3).Draw(rt, "joiners"),
		}
		for range 20 {
			game.seed++
			var failure string
			synctest.Test(t, func(*testing.T) {
				won, lost, wrong := game.play()
				proved, refused, failure = proved+won, refused+lost, wrong
			})
			if failure != "" {
				rt.Fatalf("with seed %d: %s", game.seed, failure)
			}
		}
	})
	if proved == 0 || refused == 0 {
		t.Errorf("%d were proved and %d were not: it tells nothing", proved, refused)
	}
	t.Logf("%d proved, %d not", proved, refused)
}

// game is how many play, and how the dice fall.
type game struct {
	seed              uint64
	size, early, late int
	resumed           bool
	joiners           int
}

// play tries a few times to evict, and says what is wrong.
func (g game) play() (proved, refused int, wrong string) {
	p := &plant{dice: rand.New(rand.NewPCG(g.seed, 1)), frozen: time.Now()}
	var known []string
	for i := range g.size {
		m := &machine{name: fmt.Sprintf("n%d", i), timeout: time.Duration(1+p.dice.IntN(8)) * time.Second, has: map[uint64]time.Time{}, away: p.chance(6)}
		p.servers = append(p.servers, m)
		if p.chance(2) {
			known = append(known, m.name)
		}
	}
	for range g.early {
		p.join(p.servers[p.dice.IntN(g.size)], p.frozen)
	}
	for range g.late {
		p.late()
	}
	ask := evict.Ask{Targets: []messages.Target{target(1)}, Frozen: p.frozen}
	met := 0
	for range 4 {
		if g.resumed {
			p.pass(700 * time.Millisecond)
		}
		ask.Known = known
		p.joiners = g.joiners
		if p.newest.After(ask.Frozen) { // who joined the try before is proved for in this one
			ask.Frozen = p.newest
		}
		out, err := evict.Run(context.Background(), evict.Ports{Servers: p, Company: p}, ask, nil)
		known = append(known, out.Learnt...)
		met += out.Met
		switch {
		case err == nil:
			return 1, refused, p.contradicts(out, g.early > 0 && met == 0)
		case errors.Is(err, messages.EvictionUnproved), errors.Is(err, messages.BrokerAway), errors.Is(err, messages.ActorAway):
			refused++
		default:
			return 0, refused, fmt.Sprintf("it fails with %v", err)
		}
	}
	return 0, refused, ""
}
