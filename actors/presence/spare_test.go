package presence

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// lines are what was logged.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), what)
}

// Where nobody can be kicked a silent peer is told of, once, and left alone: no time
// is shown at which it was kicked.
func TestWhereNobodyKicksASilentPeerIsToldOf(t *testing.T) {
	s := newStage(t)
	its, closed := s.victim()
	log := &lines{}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	t.Cleanup(system.Shutdown)
	tree, err := supervisor.Start(t.Context(), system, supervisor.Spec{Name: "space", Group: &supervisor.Group{Children: []supervisor.Spec{
		Spec(Config{Dialer: s.dialer(), Space: "acme", Instance: instance("a"), Connections: func() []messages.ConnectionRef { return nil }}),
	}}}, supervisor.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	s.must(err)
	a := &process{stage: s, tree: tree}
	t.Cleanup(func() { s.must(tree.Close(context.Background())) })
	a.hears("a")
	silent := func(times int) {
		t.Helper()
		natsdtest.Eventually(t, "it is told of", func() error {
			if log.count("fell silent") < times {
				return errors.New("not yet")
			}
			return nil
		})
	}
	ghost := s.ghost("g")
	ghost.publish(ghost.table.Say([]messages.ConnectionRef{its}))
	a.hears("a", "g")
	silent(1)
	for _, peer := range a.peers() {
		if !peer.Kicked.IsZero() {
			t.Errorf("it shows a kick: %+v", peer)
		}
	}
	// Another one that falls silent later is told of, and the first not again.
	other := s.ghost("h")
	other.publish(other.table.Say([]messages.ConnectionRef{its}))
	silent(2)
	if n := log.count("fell silent"); n != 2 {
		t.Errorf("told of %d times", n)
	}
	select {
	case <-closed:
		t.Error("its connection was dropped")
	default:
	}
}
