package faults_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

const (
	hosted     = "svc_a"
	hostedName = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	// toldWithin is how long the caller of a registration waits where nobody answers.
	toldWithin = 5 * time.Second
)

// TestRegistrations kills the actor of a registration over every step of its way.
func TestRegistrations(t *testing.T) {
	t.Parallel()
	for _, r := range faults.Registrations() {
		t.Run(r.Name(), func(t *testing.T) {
			t.Parallel()
			registration(t, r)
		})
	}
}

// host is who registers.
type host struct {
	*world.World
	principal messages.Principal
}

func (h host) register(ctx context.Context) (messages.InstanceRegistered, error) {
	return h.Space.RegisterHostInstance(ctx, hosted, hostedName, h.principal)
}

func registration(t *testing.T, r faults.RegistrationRow) {
	inject := &faults.Injector{}
	w := world.Open(t, inject.Into)
	alice := w.Person("alice", "laptop", "demo.>")
	h := host{w, messages.Principal{Owner: alice.Grant.Owner, Actor: alice.Grant.Actor}}
	if first, err := h.register(w.Context()); err != nil || first.Instance.Epoch != 0 {
		t.Fatalf("the first: %+v, %v", first, err)
	}
	former := alice.Connect(nats.NoReconnect())

	harm := map[faults.Way]faults.Harm{faults.Strike: faults.Throw, faults.Lose: faults.Drop}[r.Way]
	if harm != "" {
		armed := inject.Arm(faults.Fault{Actor: faults.FirstRegistration, Harm: harm, Message: r.Message, Nth: r.Nth})
		defer armed.Disarm()
	}
	held := inject.Arm(faults.Fault{Actor: "plane/observer", Harm: faults.Hold, Message: messages.ObserveServers{}})
	defer held.Disarm()
	if r.Phase != faults.Midway && r.Phase != faults.Leaving {
		held.Disarm()
	}
	told := make(chan error, 1)
	go func() {
		ctx := w.Context()
		if r.Way == faults.Lose && r.Phase == faults.Opening {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, toldWithin)
			defer cancel()
		}
		_, err := h.register(ctx)
		told <- err
	}()
	switch r.Phase {
	case faults.Midway:
		await(t, held.Struck(), "an eviction")
		if _, _, err := w.Space.Kill(t.Context(), faults.FirstRegistration, string(r.Way)); err != nil {
			t.Fatal(err)
		}
	case faults.Leaving:
		await(t, held.Struck(), "an eviction")
		leaves(t, h, r, held, told, former)
		return
	}
	err := <-told
	if (err == nil) != r.Done {
		t.Errorf("the caller is told %v", err)
	}
	if err != nil && !messages.Describe(err).Retryable && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller is told %v", err)
	}
	held.Disarm()
	nothingLeft(t, h)
	goesOn(t, h, r)
}

// nothingLeft waits until neither the actor nor its connection is there.
func nothingLeft(t *testing.T, h host) {
	h.Poll("the actor to be gone", func() bool {
		for _, a := range h.Space.Tree() {
			if strings.HasPrefix(a.Path, "operations/") {
				return false
			}
		}
		for _, c := range h.Space.Connections() {
			if !c.Ended && (strings.Contains(c.Label, "host-registration") || strings.Contains(c.Label, "remote-manager-maintenance")) {
				return false
			}
		}
		return true
	})
	if state := h.Space.Status(); state.State != messages.SpaceReady {
		t.Errorf("the space is %+v", state)
	}
}

// goesOn repairs the gate, if it is frozen, and registers the next process.
func goesOn(t *testing.T, h host, r faults.RegistrationRow) {
	gate, err := h.Space.ObserveGate(t.Context(), hosted, hostedName)
	if err != nil || (gate.State == messages.InstanceFrozen) != r.Frozen {
		t.Fatalf("the gate is %+v, %v", gate, err)
	}
	epoch := uint64(0)
	if r.Done {
		epoch = 1
	}
	repaired, err := h.Space.RepairInstance(h.Context(), hosted, hostedName)
	switch {
	case r.Frozen && (err != nil || repaired.Instance.State != messages.InstanceOpen || repaired.Instance.Epoch != epoch):
		t.Errorf("repaired %+v, %v", repaired, err)
	case !r.Frozen && !errors.Is(err, messages.InstanceNotFrozen):
		t.Errorf("repaired what was whole: %v", err)
	}
	next, err := h.register(h.Context())
	if err != nil || next.Instance.Epoch != epoch+1 {
		t.Errorf("the next one: %+v, %v", next, err)
	}
}

// leaves closes the space over a registration.
func leaves(t *testing.T, h host, r faults.RegistrationRow, held *faults.Armed, told <-chan error, former *nats.Conn) {
	closed := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), world.Patience)
	defer cancel()
	go func() { closed <- h.Space.Close(ctx) }()
	if err := <-told; !messages.Describe(err).Retryable {
		t.Errorf("the caller is told %v", err)
	}
	held.Disarm()
	err := <-closed
	if err == nil || !strings.Contains(err.Error(), faults.FirstRegistration) {
		t.Errorf("the close says %v", err)
	}
	if err := h.Space.Close(ctx); err != nil {
		t.Errorf("the close after it says %v", err)
	}
	former.Close()
	h.NoConnections()
	h.Start()
	goesOn(t, h, r)
}
