package evict_test

import (
	"context"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/messages"
)

// A client that was read before the freeze, and whose answer comes at any time after
// it, is never missed.
func TestALateDecisionOnOneServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		deaf bool
		// when lets the answer go.
		when func(l *late, v *servers, d *door)
		// in says whether the client must have come in.
		in bool
	}{
		"before the first sweep":  {when: func(l *late, v *servers, _ *door) { v.onSweep(1, l.letGo) }, in: true},
		"while somebody settles":  {when: func(l *late, _ *servers, d *door) { d.onSettle(l.letGo) }, in: true},
		"after a second":          {when: func(l *late, _ *servers, _ *door) { time.AfterFunc(time.Second, l.letGo) }, in: true},
		"at the last moment":      {when: func(l *late, _ *servers, _ *door) { time.AfterFunc(authTimeout-30*time.Millisecond, l.letGo) }},
		"never":                   {when: func(*late, *servers, *door) {}},
		"and nobody ever settles": {deaf: true, when: func(l *late, _ *servers, _ *door) { time.AfterFunc(time.Second, l.letGo) }, in: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := single(t)
			d := s.openDoor()
			d.deaf = tc.deaf
			v := s.servers()
			l := d.lateClient(t, s.url, token(1, uidA))
			d.freeze(target(1))
			tc.when(l, v, d)
			p := s.gone(evict.Ports{Servers: v, Responders: d}, evict.Ask{Targets: []messages.Target{target(1)}})
			l.letGo()
			s.missedNot(l, tc.in)
			if tc.deaf && p.took < authTimeout {
				t.Errorf("nobody settled, and it took only %v", p.took)
			}
			t.Logf("took %v, %+v", p.took, p.out)
		})
	}
}

// missedNot makes sure that a late client did not outlive the proof.
func (s *stage) missedNot(l *late, in bool) {
	s.Helper()
	select {
	case nc := <-l.ended:
		if nc != nil {
			s.dropped(nc) // if it came in after the proof, nobody drops it
		} else if in {
			s.Log("it was dropped before it knew that it was in")
		}
	case <-time.After(longEnough):
		s.Fatal("its connect never ended")
	}
}

func (v *servers) onSweep(n int, do func()) {
	v.beforeSweep = func(i int) {
		if i == n {
			do()
		}
	}
}

// onSettle has do done once the door was asked to settle.
func (d *door) onSettle(do func()) { d.settling = do }

// An answer that is on its way when the responders are asked is waited for, and not
// longer.
func TestSettlingIsFasterThanTheTimeout(t *testing.T) {
	t.Parallel()
	s := single(t)
	d := s.openDoor()
	l := d.lateClient(t, s.url, token(1, uidA))
	nc := s.client(token(1, uidA+"a"))
	d.freeze(target(1))
	d.onSettle(l.letGo)
	p := s.gone(evict.Ports{Servers: s.servers(), Responders: d}, evict.Ask{Targets: []messages.Target{{Principal: principal(1)}}})
	s.missedNot(l, true)
	s.dropped(nc)
	if p.took >= authTimeout {
		t.Errorf("it took %v", p.took)
	}
	t.Logf("took %v", p.took)
}

// Whoever is not among those that settled may still answer.
func TestOneConnectionThatDoesNotSettle(t *testing.T) {
	t.Parallel()
	s := single(t)
	d := s.openDoor()
	l := d.lateClient(t, s.url, token(1, uidA))
	d.freeze(target(1))
	time.AfterFunc(time.Second, l.letGo)
	p := s.gone(evict.Ports{Servers: s.servers(), Responders: half{d}}, evict.Ask{Targets: []messages.Target{target(1)}})
	s.missedNot(l, true)
	if p.took < authTimeout {
		t.Errorf("it took only %v", p.took)
	}
	// With nobody to ask, or nobody's key to look for, likewise.
	for _, ports := range []evict.Ports{{Servers: s.servers()}, {Servers: s.servers(), Responders: broken{}}} {
		if p := s.gone(ports, evict.Ask{Targets: []messages.Target{target(1)}}); p.took < authTimeout {
			t.Errorf("it took only %v", p.took)
		}
	}
}

// half says at once that one of two connections has settled, twice, and one that
// nobody asked about.
type half struct{ *door }

func (h half) Settle(context.Context, messages.SettleResponders) (messages.Settled, error) {
	one := h.s.ref(h.conns[0])
	return messages.Settled{Connections: []messages.ConnectionRef{one, one, {ServerID: one.ServerID, ClientID: 1 << 40}}}, nil
}

type broken struct{}

func (broken) Settle(context.Context, messages.SettleResponders) (messages.Settled, error) {
	return messages.Settled{}, messages.BrokerAway
}
