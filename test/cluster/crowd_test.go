package cluster

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// goneWithin is how long the retirement of a crowd may take until all are proved gone.
const goneWithin = 10 * time.Second

var (
	crowdPeople      = flag.Int("people", 40, "how many are retired at once")
	crowdConnections = flag.Int("connections", 200, "how many connections they have together")
)

// TestACrowdIsRetired retires many who are connected to all servers, each by a request
// of his own: they are proved gone in time, and how many there are changes nothing about the number of
// sweeps.
func TestACrowdIsRetired(t *testing.T) {
	p := begin(t)
	q := p.serve(p.all[:])
	q.holds()
	sweeps := p.sweeps()
	one := q.person("one")
	lines := []*line{one.join(p.all[0])}
	alone := q.retireAll([]*person{one})
	p.hungUp(lines)
	few := sweeps()

	people := make([]*person, *crowdPeople)
	p.atOnce(len(people), func(i int) { people[i] = q.person(fmt.Sprintf("somebody%d", i)) })
	lines = make([]*line, *crowdConnections)
	connecting := time.Now()
	p.atOnce(len(lines), func(i int) { lines[i] = people[i%len(people)].join(p.all[i%size]) })
	connected := time.Since(connecting)
	took := q.retireAll(people)
	p.hungUp(lines)
	many := sweeps()
	if took > goneWithin {
		t.Errorf("%d with %d connections: proved gone after %v", len(people), len(lines), took)
	}
	// Whoever is begun while an eviction waits joins it: that takes one sweep more, which
	// drops those who joined. One further eviction cannot be avoided on a slow machine,
	// where some are frozen so late that the first in line are not to wait for them.
	if many > 2*(few+1) {
		t.Errorf("%d sweeps for one, and %d for %d", few, many, len(people))
	}
	t.Logf("one: %v, %d sweeps; %d with %d connections (made in %v): %v, %d sweeps", alone, few, len(people), len(lines), connected, took, many)
	q.close()
}

// atOnce does n things, some at a time.
func (p *play) atOnce(n int, do func(i int)) {
	var next atomic.Int64
	var hands sync.WaitGroup
	for range 16 {
		hands.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	hands.Wait()
}

// retireAll asks for everybody's retirement in the same moment, and returns when the
// last one is answered with the proof.
func (q *process) retireAll(people []*person) time.Duration {
	q.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for _, who := range people {
		all.Go(func() {
			if proof := q.retire(who); proof.Outcome != "retired" || len(proof.Servers) != size || proof.Vacuous {
				q.Errorf("%s: %+v", who.actor, proof)
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// sweeps counts how often anybody asks the servers whom DATA has; what it returns says
// how often that was since it was asked last.
func (p *play) sweeps() func() int {
	p.Helper()
	nc := p.system(p.all[:]...)
	var count atomic.Int64
	_, err := nc.Subscribe("$SYS.REQ.ACCOUNT."+p.account("data")+".CONNZ", func(*nats.Msg) { count.Add(1) })
	p.must(err)
	p.must(nc.FlushTimeout(patience))
	return func() int {
		p.must(nc.FlushTimeout(patience))
		return int(count.Swap(0))
	}
}
