package presence

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// responder answers SettleDecisions when it is let go, with these connections.
func responder(name string, letGo <-chan error, has ...messages.ConnectionRef) supervisor.Spec {
	return supervisor.Spec{Name: name, New: func(life *supervisor.Life) actor.Actor {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *supervisor.Open:
				life.Opened()
			case *supervisor.Drain:
				life.Drained(nil)
			case *supervisor.Close:
				life.ClosedWith(nil)
			case messages.SettleDecisions:
				to := ctx.Sender()
				life.Go("settle", func(ctx context.Context) {
					select {
					case err := <-letGo:
						if err != nil {
							life.Reply(to, err)
							return
						}
						life.Reply(to, messages.Settled{Connections: has})
					case <-ctx.Done():
					}
				})
			}
		})
	}}
}

func atOnce() <-chan error {
	c := make(chan error)
	close(c)
	return c
}

func (p *process) settle(operation string, await ...messages.ConnectionRef) (messages.Settled, error) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), longEnough)
	defer cancel()
	ref, _ := p.tree.Ref("presence")
	return client.Ask[messages.Settled](ctx, ref, messages.SettleResponders{Operation: operation, Await: await})
}

func TestEveryProcessSettles(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	hold, refuse := make(chan error), make(chan error, 1)
	a := s.startWith("a", s.evictor(), []supervisor.Spec{responder("one", atOnce(), connection(1)), responder("two", atOnce(), connection(2))})
	b := s.startWith("b", s.evictor(), []supervisor.Spec{responder("one", hold, connection(3)), responder("two", refuse, connection(4))})
	a.hears("a", "b")
	b.hears("a", "b")

	// Whoever is awaited and answers is enough; who is not awaited may take his time.
	settled, err := b.settle("op1", connection(1), connection(2))
	s.must(err)
	if len(settled.Connections) != 2 {
		t.Errorf("got %+v", settled)
	}
	// One responder that refuses does not speak for the other.
	waits := make(chan messages.Settled, 1)
	refuse <- errors.New("not settled")
	go func() {
		settled, _ := a.settle("op2", connection(1), connection(2), connection(3), connection(4))
		waits <- settled
	}()
	hold <- nil // of op1, if that still waits, or of op2
	got := (<-waits).Connections
	if slices.Contains(got, connection(4)) || !slices.Contains(got, connection(1)) || !slices.Contains(got, connection(2)) {
		t.Errorf("got %+v", got)
	}
	if settled, err := a.settle("op3"); err != nil || len(settled.Connections) > 0 {
		t.Errorf("nobody is awaited: %+v, %v", settled, err)
	}
	for _, bad := range []string{"", "a.b", ">", "*", "a b", strings.Repeat("a", maxToken+1)} {
		if _, err := a.settle(bad, connection(1)); !errors.Is(err, messages.Malformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// An answer to an earlier question of the same operation says nothing about what
// began after it; nor does what is no answer.
func TestOldAnswersAndGarbageSettleNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.start("a", s.evictor())
	forger := s.dial(broker.Presence(instance("g"))).NATS()
	asked, err := forger.SubscribeSync(broker.SettleSubject("acme", "*"))
	s.must(err)
	s.must(forger.Flush())
	good := `{"v":1,"connections":[{"server":"` + server + `","cid":1}]}`
	say := func(question, word string) {
		s.must(forger.Publish(broker.SettledSubject("acme", question), []byte(word)))
	}

	answered := make(chan messages.Settled, 1)
	ask := func() {
		settled, err := a.settle("op", connection(1))
		if err != nil {
			t.Error(err)
		}
		answered <- settled
	}
	question := func() string {
		m, err := asked.NextMsg(longEnough)
		s.must(err)
		return strings.TrimPrefix(m.Subject, broker.SettleSubject("acme", ""))
	}
	go ask()
	first := question()
	for _, word := range []string{``, `{`, `{"v":2,"connections":[{"server":"` + server + `","cid":1}]}`, strings.Repeat(" ", maxSettled) + good} {
		say(first, word)
	}
	if got := <-answered; len(got.Connections) > 0 {
		t.Errorf("garbage settles %+v", got)
	}
	go ask()
	second := question()
	say(first, good)
	if got := <-answered; len(got.Connections) > 0 {
		t.Errorf("an old answer settles %+v", got)
	}
	if first == second {
		t.Error("two questions have one name")
	}
	go ask()
	third := question()
	say(third, good)
	if got := <-answered; !slices.Equal(got.Connections, []messages.ConnectionRef{connection(1)}) {
		t.Errorf("got %+v", got)
	}
}
