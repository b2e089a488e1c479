package sweep_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/messages"
)

func (s *stage) kick(connections []messages.ConnectionRef) []messages.KickResult {
	s.Helper()
	results, err := sweep.Kick(s.Context(), s.evictor(), connections)
	s.must(err)
	if len(results) != len(connections) {
		s.Fatalf("%d results for %d connections", len(results), len(connections))
	}
	for i, r := range results {
		if r.ConnectionRef != connections[i] {
			s.Fatalf("result %d is for %+v", i, r.ConnectionRef)
		}
	}
	return results
}

func TestWhatServersAnswerToKicks(t *testing.T) {
	s, space := single(t)
	victim := s.data(space.URL())
	closed := victim.StatusChanged(nats.CLOSED)
	name := ref(t, victim)
	nobody := messages.ConnectionRef{ServerID: name.ServerID, ClientID: 1 << 40}
	elsewhere := messages.ConnectionRef{ServerID: newServerID(t), ClientID: 1}
	invalid := messages.ConnectionRef{ServerID: ">", ClientID: 1}
	zero := messages.ConnectionRef{ServerID: name.ServerID}

	results := s.kick([]messages.ConnectionRef{nobody, name, elsewhere, invalid, zero})
	for i, want := range []messages.KickOutcome{messages.KickAbsent, messages.KickDone, messages.KickNoServer, messages.KickRefused, messages.KickRefused} {
		if results[i].Outcome != want {
			t.Errorf("%d: got %+v, want %s", i, results[i], want)
		}
	}
	select {
	case <-closed:
	case <-time.After(longEnough):
		t.Error("the kicked connection still stands")
	}
	if again := s.kick([]messages.ConnectionRef{name})[0].Outcome; again != messages.KickAbsent {
		t.Errorf("kicked again: %s", again)
	}
	if none := s.kick(nil); len(none) > 0 {
		t.Errorf("no kick has results: %v", none)
	}
}

func TestForgedAnswersToKicks(t *testing.T) {
	s, space := single(t)
	forger := s.glass(space.URL())
	id, evictor := newServerID(t), s.evictor()
	var answer atomic.Value
	asked, err := forger.Subscribe("$SYS.REQ.SERVER."+id+".KICK", func(m *nats.Msg) {
		if said := answer.Load().(string); said != "" {
			_ = m.Respond([]byte(said))
		}
	})
	s.must(err)
	defer func() { s.must(asked.Unsubscribe()) }()
	s.must(forger.Flush())
	for _, tc := range []struct {
		answer string
		want   messages.KickOutcome
	}{
		{`{`, messages.KickRefused},
		{`{"server":{"name":"n9","id":"` + space.Server.ID() + `"}}`, messages.KickRefused},
		{`{}`, messages.KickRefused},
		{`{"server":{"name":"n9","id":"` + id + `"},"error":{"code":500,"description":"on holiday"}}`, messages.KickRefused},
		{``, messages.KickSilent},
	} {
		answer.Store(tc.answer)
		ctx := within(t)
		if tc.answer == "" {
			ctx = soon(t)
		}
		got, err := sweep.Kick(ctx, evictor, []messages.ConnectionRef{{ServerID: id, ClientID: 1}})
		if err != nil || got[0].Outcome != tc.want {
			t.Errorf("%q: got %+v, %v", tc.answer, got, err)
		}
	}
}

func TestOnlyTheEvictorKicks(t *testing.T) {
	s, space := single(t)
	victim := s.data(space.URL())
	if err := sweep.ProveKick(t.Context(), s.evictor()); err != nil {
		t.Errorf("the evictor: %v", err)
	}
	observer := s.conn(space.URL(), broker.Observer()).NATS()
	if err := sweep.ProveKick(soon(t), observer); !errors.Is(err, messages.KeysUnusable) {
		t.Errorf("the observer: %v", err)
	}
	if _, err := sweep.Kick(soon(t), observer, []messages.ConnectionRef{ref(t, victim)}); !errors.Is(err, messages.KeysUnusable) {
		t.Errorf("the observer: %v", err)
	}
	if !victim.IsConnected() {
		t.Error("it was kicked by who may not")
	}
	evictor := sweep.NewObserver(s.evictor(), 100*time.Millisecond)
	if _, err := evictor.Roster(t.Context(), nil); !errors.Is(err, messages.KeysUnusable) {
		t.Errorf("the evictor asks who the servers are: %v", err)
	}
}

func TestNobodyIsAskedOverAClosedConnection(t *testing.T) {
	s, space := single(t)
	c := s.conn(space.URL(), broker.Evictor())
	id := space.Server.ID()
	c.Sever()
	<-c.Ended()
	if _, err := sweep.Kick(t.Context(), c.NATS(), []messages.ConnectionRef{{ServerID: id, ClientID: 1}}); !errors.Is(err, messages.BrokerAway) {
		t.Errorf("got %v", err)
	}
	if _, err := sweep.NewObserver(c.NATS(), 0).Roster(t.Context(), nil); !errors.Is(err, messages.BrokerAway) {
		t.Errorf("got %v", err)
	}
}

// soon is over before long: the time for who is not going to be answered.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
