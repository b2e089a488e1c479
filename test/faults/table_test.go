package faults_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// rowsOf are the rows of one phase.
func rowsOf(phase faults.Phase) []faults.Row {
	var rows []faults.Row
	for _, r := range faults.Table() {
		if r.Phase == phase {
			rows = append(rows, r)
		}
	}
	return rows
}

func name(r faults.Row) string {
	n := strings.ReplaceAll(r.Actor, "/", "-") + " " + string(r.Way)
	if r.Message != nil {
		n += fmt.Sprintf(" %T", r.Message)
	}
	return n
}

// TestTableIsWhole has every actor of a space in the table, and no other.
func TestTableIsWhole(t *testing.T) {
	w := world.Open(t)
	var there []string
	for _, a := range w.Leaves() {
		there = append(there, a.Path)
	}
	if !slices.Equal(there, faults.Actors()) {
		t.Errorf("the space has %v, the table %v", there, faults.Actors())
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	w := world.Open(t)
	alice := w.Person("alice", "laptop", "demo.>")
	for _, r := range rowsOf(faults.Idle) {
		t.Run(name(r), func(t *testing.T) {
			killed(t, w, r, func() bool {
				nc, err := alice.DialBy(time.Now().Add(faults.Within))
				if err != nil {
					t.Log(err)
					return false
				}
				nc.Close()
				return true
			})
		})
	}
}

func TestUnderLoad(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	w := world.Open(t, inject.Into)
	ctx, stop := context.WithCancel(context.Background())
	l := world.StartLoad(ctx, w)
	connects := func() bool { return l.AwaitConnect(faults.Within) }
	for _, r := range rowsOf(faults.Loaded) {
		t.Run(name(r), func(t *testing.T) {
			switch r.Way {
			case faults.Panic, faults.Stop, faults.Disconnect:
				killed(t, w, r, connects)
			default:
				struck(t, w, r, inject, l)
			}
		})
	}
	stop()
	l.Wait()
	l.Check(t)
}

// killed runs a row of an open space in which somebody kills.
func killed(t *testing.T, w *world.World, r faults.Row, connects func() bool) {
	awaitReady(w)
	check := returns(t, w, r, connects)
	before := w.Actor(r.Actor).Generation
	_, _, err := w.Space.Kill(t.Context(), r.Actor, string(r.Way))
	if r.Outcome == faults.Inapplicable {
		if !errors.Is(err, messages.KillInapplicable) || w.Actor(r.Actor).Generation != before {
			t.Errorf("got %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	check()
}

// returns gives a check, for just after a death, that all is well again in time.
func returns(t *testing.T, w *world.World, r faults.Row, connects func() bool) func() {
	before, lives := w.Space.Status().Plane.Generation, w.Actor(r.Actor).Generation
	return func() {
		began := time.Now()
		if !connects() {
			t.Errorf("no connect within %s", faults.Within)
		}
		w.AwaitLife(r.Actor, lives+1)
		awaitReady(w)
		if took := time.Since(began); took > faults.Within {
			t.Errorf("well again after %s", took)
		}
		if fenced := w.Space.Status().Plane.Generation != before; fenced != (r.Outcome == faults.Fences) {
			t.Errorf("claims before %d, after %d", before, w.Space.Status().Plane.Generation)
		}
	}
}

// struck runs a row of an open space in which a message is struck under load: one of
// those that the load causes, not the first of its kind.
func struck(t *testing.T, w *world.World, r faults.Row, inject *faults.Injector, l *world.Load) {
	awaitReady(w)
	connects := func() bool { return l.AwaitConnect(faults.Within) }
	check := returns(t, w, r, connects)
	before, lives, failed := w.Space.Status().Plane, w.Actor(r.Actor).Generation, len(l.Failed())
	fault := faults.Fault{Actor: r.Actor, Harm: harm(r.Way), Message: r.Message}
	if r.Message != nil {
		fault.Nth = 3
	}
	armed := inject.Arm(fault)
	defer armed.Disarm()
	await(t, armed.Struck(), "the message")
	if r.Outcome == faults.Returns {
		check()
		return
	}
	if reading := r.Actor == "plane/reader"; !reading || r.Way == faults.Lose {
		if !connects() {
			t.Errorf("no connect within %s", faults.Within)
		}
	}
	if r.Actor == "plane/writer" {
		w.Poll("who waited to be told", func() bool { return len(l.Failed()) > failed })
		for _, told := range l.Failed()[failed:] {
			t.Log(told)
			if !strings.HasSuffix(told, " 503") {
				t.Errorf("told as %q", told)
			}
		}
	}
	armed.Disarm()
	if !connects() {
		t.Errorf("no connect within %s after it", faults.Within)
	}
	if now := w.Space.Status().Plane; w.Actor(r.Actor).Generation != lives || now.Generation != before.Generation || now.State != messages.PlaneActive {
		t.Errorf("the plane was %+v and is %+v, the actor's life %d and %d", before, now, lives, w.Actor(r.Actor).Generation)
	}
}

func harm(w faults.Way) faults.Harm {
	return map[faults.Way]faults.Harm{faults.Strike: faults.Throw, faults.Lose: faults.Drop, faults.Delay: faults.Hold}[w]
}

func await(t *testing.T, what <-chan struct{}, name string) {
	t.Helper()
	select {
	case <-what:
	case <-time.After(world.Patience):
		t.Fatalf("waited in vain for %s", name)
	}
}

func awaitReady(w *world.World) {
	w.Poll("the space to be ready and the plane to be held", func() bool {
		s := w.Space.Status()
		return s.State == messages.SpaceReady && s.Plane.State == messages.PlaneActive
	})
}

// closes notes who was asked to close, in that order.
type closes struct {
	mu   sync.Mutex
	told []string
}

// beside has the closes of a space noted before the injector strikes.
func (c *closes) beside(inject *faults.Injector) func(*space.Config) {
	return func(config *space.Config) {
		config.Middleware = func(path string) []actor.ReceiverMiddleware {
			return append([]actor.ReceiverMiddleware{c.note(path)}, inject.Middleware(path)...)
		}
	}
}

func (c *closes) note(path string) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, e *actor.MessageEnvelope) {
			if _, closing := e.Message.(*supervisor.Close); closing {
				c.mu.Lock()
				c.told = append(c.told, path)
				c.mu.Unlock()
			}
			next(ctx, e)
		}
	}
}

func TestOpening(t *testing.T) {
	t.Parallel()
	for _, r := range rowsOf(faults.Opening) {
		t.Run(name(r), func(t *testing.T) {
			if r.Way == faults.Delay {
				t.Parallel() // it takes as long as an opening may
			}
			inject, closed := &faults.Injector{}, &closes{}
			armed := inject.Arm(faults.Fault{Actor: r.Actor, Harm: harm(r.Way), Message: r.Message})
			defer armed.Disarm()
			w := world.New(t, closed.beside(inject))
			ctx, cancel := context.WithTimeout(context.Background(), 4*world.Patience) // every limit on the way is spent
			defer cancel()
			h, err := space.Start(ctx, w.System, w.Config)
			if err == nil {
				_ = h.Close(w.Context())
				t.Fatal("it opened")
			}
			if !strings.Contains(err.Error(), r.Actor) {
				t.Errorf("the error does not name it: %v", err)
			}
			if late := errors.Is(err, supervisor.ErrLate); late != (r.Way == faults.Delay) {
				t.Errorf("got %v", err)
			}
			want := slices.Clone(faults.Actors()[:slices.Index(faults.Actors(), r.Actor)])
			slices.Reverse(want)
			if !slices.Equal(closed.told, want) {
				t.Errorf("closed %v, want %v", closed.told, want)
			}
			armed.Disarm()
			w.NoConnections()
		})
	}
}

func TestClosing(t *testing.T) {
	t.Parallel()
	for _, r := range rowsOf(faults.Closing) {
		t.Run(name(r), func(t *testing.T) {
			inject := &faults.Injector{}
			w := world.New(t, inject.Into)
			w.Start()
			awaitReady(w)
			label := w.Actor(r.Actor).Label
			armed := inject.Arm(faults.Fault{Actor: r.Actor, Harm: harm(r.Way), Message: r.Message, Always: true})
			defer armed.Disarm()
			ctx := w.Context()
			if r.Way == faults.Lose {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Second)
				defer cancel()
			}
			err := w.Space.Close(ctx)
			if err == nil || !strings.Contains(err.Error(), r.Actor) || !strings.Contains(err.Error(), label) {
				t.Errorf("the close does not tell of %s (%s): %v", r.Actor, label, err)
			}
			if still := errors.Is(err, supervisor.ErrStillRunning); still != (r.Way == faults.Lose) {
				t.Errorf("got %v", err)
			}
			if r.Outcome == faults.CloseWaits {
				waits(t, w, armed)
			}
			await(t, w.Space.Closed(), "the end")
			w.NoConnections()
		})
	}
}

// waits insists that a close which told has not counted as one, and closes again.
func waits(t *testing.T, w *world.World, armed *faults.Armed) {
	select {
	case <-w.Space.Closed():
		t.Error("it counts as closed")
	default:
	}
	if state := w.Space.Status().State; state != messages.SpaceDraining {
		t.Errorf("state %s", state)
	}
	armed.Disarm()
	w.Close()
}
