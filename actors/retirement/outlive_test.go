package retirement

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// listener is a desk that only notes what it is told.
type listener struct {
	mu   sync.Mutex
	told []messages.OperationProgress
}

func (l *listener) spec() supervisor.Spec {
	return supervisor.Spec{Name: desk, New: func(life *supervisor.Life) actor.Actor {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *supervisor.Open:
				life.Opened()
			case *supervisor.Drain:
				life.Drained(nil)
			case *supervisor.Close:
				life.ClosedWith(nil)
			case progress:
				l.mu.Lock()
				defer l.mu.Unlock()
				l.told = append(l.told, messages.OperationProgress(m))
			}
		})
	}}
}

// says reports whether it was told of an operation that waits for something.
func (l *listener) says(id, waitingFor string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.told {
		if p.ID == id && p.Total > 0 && strings.Contains(p.WaitingFor, waitingFor) {
			return true
		}
	}
	return false
}

// outliver is a sweeper that can ask nobody.
func outliver(t *testing.T, longest time.Duration) (*supervisor.Tree, *listener) {
	t.Helper()
	l := &listener{}
	config := Config{Path: "retirement", Outlives: longest}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	t.Cleanup(system.Shutdown)
	tree, err := supervisor.Start(t.Context(), system, supervisor.Spec{Name: "plane", Group: &supervisor.Group{Children: []supervisor.Spec{
		{Name: "retirement", Group: &supervisor.Group{Children: []supervisor.Spec{sweeperSpec(config), l.spec()}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tree, l
}

func evictFrom(ctx context.Context, tree *supervisor.Tree, id string, denied time.Time) (evicted, error) {
	op := someOperation(messages.StepRevoked)
	op.ID = id
	ref, _ := tree.Ref(sweeperOf("retirement"))
	return client.Ask[evicted](ctx, ref, evictTarget{target: messages.Target{Principal: messages.Principal{
		Owner: "u_aaaaaaaaaaaaaaaaaaaaaaaaaa", Actor: "x"}, UID: "aaaaaaaaaaaaaaaaaaaaaaaaaa"}, denied: denied, of: op})
}

// Where nobody can be asked an eviction is proved by time, and not before: nobody
// needs to wait for somebody else's, and whoever follows is told until when.
func TestTimeProvesWhereNobodyCanBeAsked(t *testing.T) {
	const longest = 10 * time.Minute
	tree, l := outliver(t, longest)
	now := time.Now()
	waiting, stop := context.WithCancel(t.Context())
	var pending sync.WaitGroup
	pending.Go(func() {
		if got, err := evictFrom(waiting, tree, "o1", now); err == nil || got.Eviction != "" {
			t.Errorf("before its time: %+v, %v", got, err)
		}
	})
	// One that was denied so long ago that all has run out.
	got, err := evictFrom(t.Context(), tree, "o2", now.Add(-evict.Proved(longest)))
	if err != nil || got.Eviction != messages.EvictionExpired || got.Vacuous || got.Met+got.Evicted+len(got.Servers)+len(got.Learnt) > 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	// And one of which that is true in a moment.
	const moment = 300 * time.Millisecond
	began := time.Now()
	got, err = evictFrom(t.Context(), tree, "o3", began.Add(moment-evict.Proved(longest)))
	if took := time.Since(began); err != nil || got.Eviction != messages.EvictionExpired || took < moment {
		t.Errorf("got %+v, %v after %v", got, err, took)
	}
	until := now.Add(evict.Outlived(longest)).UTC().Format(time.RFC3339)
	natsdtest.Eventually(t, "it is told until when it waits", func() error {
		if !l.says("o1", until) {
			return errors.New(until)
		}
		return nil
	})
	stop()
	pending.Wait()
}

// An operation waits for as long as that takes.
func TestAnOperationOutlastsItsEviction(t *testing.T) {
	for _, longest := range []time.Duration{time.Second, 15 * time.Minute} {
		if within := (Config{Outlives: longest}).evictWithin(); within < evict.Proved(longest)+evictWithin {
			t.Errorf("for %s it waits %s", longest, within)
		}
	}
	if within := (Config{}).evictWithin(); within != evictWithin {
		t.Errorf("a sweep is waited for %s", within)
	}
}

func TestServersOfSomebodyElseTellNothing(t *testing.T) {
	_, observed := unasked{}.Observe(t.Context(), nil)
	_, swept := unasked{}.Sweep(t.Context(), messages.SweepConnections{})
	_, kicked := unasked{}.Kick(t.Context(), nil)
	for _, err := range []error{observed, swept, kicked} {
		if !errors.Is(err, messages.SystemAbsent) {
			t.Errorf("got %v", err)
		}
	}
}
