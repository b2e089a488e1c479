package evict_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/messages"
)

// anew has a target's connections judged anew, and must prove it.
func (s *stage) anew(ports evict.Ports, targets ...messages.Target) evict.Outcome {
	s.Helper()
	ask := evict.Ask{Targets: targets, Operation: "op"}
	for _, key := range s.m.Callouts {
		ask.Callouts = append(ask.Callouts, key.Public)
	}
	out, err := evict.Anew(s.Context(), ports, ask, nil)
	s.must(err)
	return out
}

// Whoever may still come in comes back, by a connection that was judged anew.
func TestWhoMayComesBack(t *testing.T) {
	t.Parallel()
	s := single(t)
	d := s.openDoor()
	back := make(chan struct{}, 1)
	nc := s.client(token(1, uidA), func(o *nats.Options) error {
		o.AllowReconnect, o.MaxReconnect, o.ReconnectWait = true, -1, 1
		o.ReconnectedCB = func(*nats.Conn) { back <- struct{}{} }
		return nil
	})
	stranger := s.client(token(2, uidB))
	before, other := s.ref(nc), s.ref(stranger)
	out := s.anew(evict.Ports{Servers: s.servers(), Responders: d}, target(1))
	<-back
	if after := s.ref(nc); after == before {
		t.Error("its old connection is left")
	}
	for _, c := range s.listed(target(1)) {
		if c.ConnectionRef == before {
			t.Errorf("proved gone, and there: %+v", c)
		}
	}
	if out.Evicted == 0 || out.Vacuous || out.Eviction != messages.EvictionSwept {
		t.Errorf("got %+v", out)
	}
	if s.ref(stranger) != other {
		t.Error("somebody else was dropped")
	}
}

// Whoever was read before and is let in late is old, and dropped.
func TestWhoIsLetInLateIsOld(t *testing.T) {
	t.Parallel()
	s := single(t)
	d := s.openDoor()
	v := s.servers()
	l := d.lateClient(t, s.url, token(1, uidA))
	v.onSweep(1, l.letGo)
	out := s.anew(evict.Ports{Servers: v, Responders: d}, target(1))
	s.missedNot(l, true)
	if out.Eviction != messages.EvictionSwept {
		t.Errorf("got %+v", out)
	}
}
