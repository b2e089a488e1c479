package faults_test

import (
	"context"
	"errors"
	"slices"
	"strings"
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

func name(r faults.Row) string { return strings.ReplaceAll(r.Actor, "/", "-") + " " + string(r.Way) }

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
	w := world.Open(t)
	ctx, stop := context.WithCancel(context.Background())
	l := world.StartLoad(ctx, w)
	for _, r := range rowsOf(faults.Loaded) {
		t.Run(name(r), func(t *testing.T) {
			killed(t, w, r, func() bool { return l.AwaitConnect(faults.Within) })
		})
	}
	stop()
	l.Wait()
	l.Check(t)
}

// killed runs a row of an open space.
func killed(t *testing.T, w *world.World, r faults.Row, connects func() bool) {
	awaitReady(w)
	before, lives := w.Space.Status().Plane.Generation, w.Actor(r.Actor).Generation
	_, _, err := w.Space.Kill(t.Context(), r.Actor, string(r.Way))
	if r.Outcome == faults.Inapplicable {
		if !errors.Is(err, messages.KillInapplicable) || w.Actor(r.Actor).Generation != lives {
			t.Errorf("got %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
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

func awaitReady(w *world.World) {
	w.Poll("the space to be ready and the plane to be held", func() bool {
		s := w.Space.Status()
		return s.State == messages.SpaceReady && s.Plane.State == messages.PlaneActive
	})
}

// dies has an actor panic over one of the kit's messages.
func dies[M any](path string, told func(string)) func(*space.Config) {
	return func(c *space.Config) {
		c.Intercept = func(at string, next func(actor.Context)) func(actor.Context) {
			return func(ctx actor.Context) {
				if _, closing := ctx.Message().(*supervisor.Close); closing {
					told(at)
				}
				if _, it := ctx.Message().(M); it && at == path {
					panic("by the table")
				}
				next(ctx)
			}
		}
	}
}

func TestOpening(t *testing.T) {
	t.Parallel()
	for i, r := range rowsOf(faults.Opening) {
		t.Run(name(r), func(t *testing.T) {
			closed := make(chan string, len(faults.Actors())) // each closes once
			w := world.New(t, dies[*supervisor.Open](r.Actor, func(at string) { closed <- at }))
			h, err := space.Start(w.Context(), w.System, w.Config)
			if err == nil {
				_ = h.Close(w.Context())
				t.Fatal("it opened")
			}
			if !strings.Contains(err.Error(), r.Actor) {
				t.Errorf("the error does not name it: %v", err)
			}
			close(closed)
			var got []string
			for at := range closed {
				got = append(got, at)
			}
			want := slices.Clone(faults.Actors()[:i])
			slices.Reverse(want)
			if !slices.Equal(got, want) {
				t.Errorf("closed %v, want %v", got, want)
			}
			w.NoConnections()
		})
	}
}

func TestClosing(t *testing.T) {
	t.Parallel()
	for _, r := range rowsOf(faults.Closing) {
		t.Run(name(r), func(t *testing.T) {
			w := world.New(t, dies[*supervisor.Close](r.Actor, func(string) {}))
			w.Start()
			awaitReady(w)
			if err := w.Space.Close(w.Context()); err == nil || !strings.Contains(err.Error(), r.Actor) {
				t.Errorf("the close does not tell: %v", err)
			}
			<-w.Space.Closed()
			w.NoConnections()
		})
	}
}
