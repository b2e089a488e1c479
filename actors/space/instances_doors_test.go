package space_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// What only says that something was written resolves nothing, however often.
func TestANudgeIsNoFence(t *testing.T) {
	t.Parallel()
	reads := make(chan struct{}, 1024) // more than there are
	s := newStage(t, func(c *space.Config) { c.Middleware = counting(reads) })
	s.registers()
	forger := s.Owner("ctrl")
	resolved := make(chan messages.Instance, 1)
	go func() {
		gate, err := s.Space.AwaitFence(s.Context(), endpoint, instance, 0)
		if err != nil {
			t.Error(err)
		}
		resolved <- gate
	}()
	await := func() {
		t.Helper()
		select {
		case <-reads:
		case gate := <-resolved:
			t.Fatalf("resolved to %+v", gate)
		case <-time.After(world.Patience):
			t.Fatal("nobody looks")
		}
	}
	await()
	began := time.Now()
	for range 20 {
		s.must(forger.Publish("cotal.main.changed.inst."+endpoint+"."+instance, nil))
		s.must(forger.Flush())
		await()
	}
	if took := time.Since(began); took > 60*time.Second { // 20 looks by the clock alone take longer
		t.Errorf("it looks by itself: %s", took)
	}
	if done := s.registers(); done.Instance.Epoch != 1 {
		t.Errorf("registered %+v", done)
	}
	if gate := <-resolved; gate.State == messages.InstanceOpen && gate.Epoch == 0 {
		t.Errorf("resolved to %+v", gate)
	}
}

// Who closes refuses; whoever waits is told.
func TestDoorsOfAClosingSpace(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.registers()
	waiting := make(chan error, 1)
	go func() {
		_, err := s.Space.AwaitFence(context.Background(), endpoint, instance, 0)
		waiting <- err
	}()
	s.Close()
	if err := <-waiting; !errors.Is(err, messages.ServiceClosing) {
		t.Errorf("who waits: %v", err)
	}
	_, registered := s.register()
	_, repaired := s.Space.RepairInstance(t.Context(), endpoint, instance)
	_, observed := s.Space.ObserveGate(t.Context(), endpoint, instance)
	_, awaited := s.Space.AwaitFence(t.Context(), endpoint, instance, 0)
	for _, err := range []error{registered, repaired, observed, awaited} {
		if !errors.Is(err, messages.ServiceClosing) {
			t.Errorf("got %v", err)
		}
	}
}

// Calls that are inside when the space closes end in the order in which they came,
// before the plane does.
func TestCallsEndInTheOrderOfTheirAdmission(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	s := newStage(t, inject.Into)
	s.registers()
	s.serve(0, nats.NoReconnect())
	events := s.Space.Events(context.Background())
	const calls = 4
	held := inject.Arm(faults.Fault{Actor: "plane/observer", Harm: faults.Hold, Message: messages.ObserveServers{}})
	defer held.Disarm()
	names := []string{instance, "bbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccccccccccccccccccc", "dddddddddddddddddddddddddd"}
	for _, name := range names[1:] {
		_, err := s.Space.RegisterHostInstance(s.Context(), endpoint, name, s.principal())
		s.must(err)
	}
	told := make(chan error, calls)
	var order []string
	for _, name := range names {
		go func() {
			_, err := s.Space.RegisterHostInstance(s.Context(), endpoint, name, s.principal())
			told <- err
		}()
		s.Poll("the gate of "+name+" to be frozen", func() bool {
			gate, err := s.Space.ObserveGate(s.Context(), endpoint, name)
			return err == nil && gate.State == messages.InstanceFrozen
		})
	}
	for _, a := range s.Space.Tree() {
		if strings.HasPrefix(a.Path, "operations/") {
			order = append(order, a.Path)
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Space.Close(s.Context()) }()
	for range calls {
		if err := <-told; !errors.Is(err, messages.ServiceClosing) {
			t.Errorf("who is inside is told %v", err)
		}
	}
	held.Disarm()
	s.must(<-closed)
	var ended []string
	for e := range events {
		if e.Kind == "resourceended" && (slices.Contains(order, e.Path) || e.Path == "plane/reader") {
			ended = append(ended, e.Path)
		}
	}
	if len(order) != calls || !slices.Equal(ended, append(order, "plane/reader")) {
		t.Errorf("they came as %v and ended as %v", order, ended)
	}
}
