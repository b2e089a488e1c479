package space_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// A service restarts: before its new process may go on, the old one is connected
// nowhere, and nothing that was issued to it is good any more.
func TestAServiceIsFencedByItsSuccessor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	asker := s.asker.Connect()
	first := s.registers()
	if first.Instance.Epoch != 0 || first.Instance.State != messages.InstanceOpen {
		t.Fatalf("the first is %+v", first)
	}
	s.must(s.issue(first, "c-first"))
	dropped := make(chan struct{}, 1)
	s.serve(0, nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { dropped <- struct{}{} }))
	if got := s.answers(asker); got != "0" {
		t.Fatalf("%s answers", got)
	}
	fenced := make(chan messages.Instance, 1)
	go func() {
		gate, err := s.Space.AwaitFence(s.Context(), endpoint, instance, 0)
		if err != nil {
			t.Errorf("await the fence: %v", err)
		}
		fenced <- gate
	}()

	second := s.registers()
	if second.Instance.Epoch != 1 || second.Revoked != 1 || second.Instance.RegistrationRevision <= first.Instance.RegistrationRevision {
		t.Errorf("the second is %+v", second)
	}
	if got := s.answers(asker); got != "nobody" {
		t.Errorf("%s answers", got)
	}
	select {
	case <-dropped:
	case <-time.After(world.Patience):
		t.Error("the former process is still connected")
	}
	if gate := <-fenced; gate.State == messages.InstanceOpen && gate.Epoch == 0 {
		t.Errorf("fenced by %+v", gate)
	}
	if got := s.credential("c-first"); got != ledger.CredentialRevoked {
		t.Errorf("what it was issued is %s", got)
	}
	if err := s.issue(first, "c-late"); !errors.Is(err, ledger.ErrLost) || s.credential("c-late") != "absent" {
		t.Errorf("the former process was issued something: %v", err)
	}
	s.must(s.issue(second, "c-second"))
	s.serve(1)
	if got := s.answers(asker); got != "1" {
		t.Errorf("%s answers", got)
	}
	if _, err := s.Space.AwaitFence(s.Context(), endpoint, instance, 0); err != nil { // at once
		t.Error(err)
	}
	s.ended(2)
}

// A process that comes back whenever it is dropped keeps its successor out, and learns
// that it is fenced.
func TestAFormerProcessThatStaysIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.registers()
	old := s.serve(0, nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0), nats.MaxReconnects(-1))
	if done, err := s.register(); !errors.Is(err, messages.InstanceHeld) || !strings.Contains(err.Error(), s.principal().String()) {
		t.Fatalf("got %+v, %v", done, err)
	}
	s.ended(2)
	fence, err := s.Space.AwaitFence(s.Context(), endpoint, instance, 0)
	if err != nil || fence.State != messages.InstanceFrozen || fence.Epoch != 0 {
		t.Errorf("fenced by %+v, %v", fence, err)
	}
	var list struct {
		Instances []map[string]any `json:"instances"`
	}
	if status := s.Call("GET", "/v1/instances/"+endpoint, nil, &list); status != http.StatusOK || len(list.Instances) != 1 ||
		list.Instances[0]["state"] != "frozen" || list.Instances[0]["held_by"] != fence.Operation.ID {
		t.Errorf("listed %d %+v", status, list)
	}
	old.Close()
	if second := s.registers(); second.Instance.Epoch != 1 {
		t.Errorf("the second is %+v", second)
	}
}

// Two processes start at once, each beside a space of its own: one wins.
func TestOfTwoStartsOneWins(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	s := newStage(t, inject.Into)
	s.registers()
	beside := s.Beside()
	held := inject.Arm(faults.Fault{Actor: "plane/observer", Harm: faults.Hold, Message: messages.ObserveServers{}})
	defer held.Disarm()
	loser := make(chan error, 1)
	go func() {
		_, err := s.register()
		loser <- err
	}()
	select {
	case <-held.Struck():
	case <-time.After(world.Patience):
		t.Fatal("nobody is evicted")
	}
	winner, err := beside.Space.RegisterHostInstance(s.Context(), endpoint, instance, s.principal())
	if err != nil || winner.Instance.Epoch != 1 {
		t.Errorf("the winner is %+v, %v", winner, err)
	}
	held.Disarm()
	if err := <-loser; !errors.Is(err, messages.InstanceSuperseded) {
		t.Errorf("the loser: %v", err)
	}
	if gate := s.gate(); gate != winner.Instance {
		t.Errorf("the gate is %+v", gate)
	}
}

// What is refused opens no connection.
func TestWhatIsNoInstanceIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, c := range []struct {
		endpoint, instance string
		principal          messages.Principal
		want               error
	}{
		{"a.b", instance, s.principal(), messages.Malformed},
		{"", instance, s.principal(), messages.Malformed},
		{"*", instance, s.principal(), messages.Malformed},
		{"Svc", instance, s.principal(), messages.Malformed},
		{endpoint, "one", s.principal(), messages.Malformed},
		{endpoint, instance, messages.Principal{}, messages.Malformed},
		{endpoint, instance, messages.Principal{Owner: "x", Actor: "y"}, messages.Malformed},
		{"auth", instance, s.principal(), messages.InstanceForeign},
	} {
		if _, err := s.Space.RegisterHostInstance(t.Context(), c.endpoint, c.instance, c.principal); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	s.ended(0)
	if _, err := s.Space.ObserveGate(t.Context(), endpoint, instance); !errors.Is(err, messages.InstanceNotFound) {
		t.Errorf("one that never registered: %v", err)
	}
	if gate, err := s.Space.AwaitFence(t.Context(), endpoint, instance, 7); err != nil || gate != (messages.Instance{}) {
		t.Errorf("fenced by %+v, %v", gate, err)
	}
	if _, err := s.Space.RepairInstance(t.Context(), endpoint, instance); !errors.Is(err, messages.InstanceNotFound) {
		t.Errorf("repaired: %v", err)
	}
	s.registers()
	other := messages.Principal{Owner: s.asker.Grant.Owner, Actor: s.asker.Grant.Actor}
	if _, err := s.Space.RegisterHostInstance(t.Context(), endpoint, instance, other); !errors.Is(err, messages.InstanceForeign) {
		t.Errorf("another principal: %v", err)
	}
	all, err := s.Space.Instances(t.Context(), messages.ListInstances{})
	if err != nil || len(all.Items) != 2 || !slices.ContainsFunc(all.Items, func(i messages.Instance) bool { return i.Endpoint == "auth" }) {
		t.Errorf("listed %+v, %v", all, err)
	}
}

// Where nobody can be asked a successor is let in once whatever stood has run out, and
// is told until when that is.
func TestASuccessorOutlastsWhereNobodyCanBeAsked(t *testing.T) {
	t.Parallel()
	for _, lifetime := range []time.Duration{time.Second, 15 * time.Minute} {
		t.Run(lifetime.String(), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, func(c *space.Config) { c.Eviction, c.BearerLifetime = space.EvictionExpiry, lifetime })
			s.registers()
			began := time.Now()
			done, err := s.register()
			if lifetime > time.Minute {
				if !errors.Is(err, messages.InstanceHeld) || !strings.Contains(messages.PublicText(err), "runs out at") {
					t.Errorf("got %+v, %v", done, err)
				}
				return
			}
			if took := time.Since(began); err != nil || done.Instance.Epoch != 1 || took < lifetime {
				t.Errorf("got %+v, %v after %s", done, err, took)
			}
		})
	}
}
