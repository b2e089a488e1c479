package evict_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/messages"
)

// BenchmarkEvict proves 200 principals with 5,000 connections on three servers gone.
// Most of the time is what a connect may take until its server drops it; `swept-ms` is
// the rest.
func BenchmarkEvict(b *testing.B) {
	const principals, connections = 200, 5000
	s, group := cluster(b)
	d := s.openDoor()
	var targets []messages.Target
	for i := range principals {
		targets = append(targets, target(i))
	}
	for b.Loop() {
		b.StopTimer()
		d.thaw()
		var mu sync.Mutex
		var all []*nats.Conn
		crowd(connections, func(i int) {
			nc, err := s.dial(group.Server(i%group.Size()).URL(), token(i%principals, uidA))
			if err != nil {
				b.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, nc)
		})
		d.freeze(targets...)
		v := s.servers()
		b.StartTimer()
		p := s.evict(evict.Ports{Servers: v, Responders: d}, evict.Ask{Targets: targets, Known: three})
		b.StopTimer()
		if p.err != nil || p.out.Evicted != connections || !slices.Equal(p.out.Servers, three) || v.swept.Load() != 3 || v.kicks.Load() != 1 {
			b.Fatalf("%d evicted by %v in %d sweeps and %d calls for kicks: %v", p.out.Evicted, p.out.Servers, v.swept.Load(), v.kicks.Load(), p.err)
		}
		b.ReportMetric(float64(p.took-authTimeout)/float64(time.Millisecond), "swept-ms")
		for _, nc := range all {
			s.dropped(nc)
		}
		b.StartTimer()
	}
}

// thaw lets everybody in again.
func (d *door) thaw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.frozen)
}
