package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/provisioning"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// What a process is removing when it ends, whoever holds the plane after it removes, at
// whichever step it was; and the name is free then.
func TestTheNextHolderRemoves(t *testing.T) {
	t.Parallel()
	for _, f := range []faults.Fault{
		{Actor: "plane/writer", Message: provisioning.JournalWrite{}, Nth: 1}, // that it is undone
		{Actor: faults.FirstDeprovisioning, Message: provisioning.Do{}},
		{Actor: "plane/writer", Message: provisioning.JournalWrite{}, Nth: 2}, // that it is done
	} {
		t.Run(fmt.Sprintf("%s %T %d", strings.ReplaceAll(f.Actor, "/", "-"), f.Message, f.Nth), func(t *testing.T) {
			t.Parallel()
			inject := &faults.Injector{}
			y := openYard(t, inject)
			plain := *y.World
			plain.Config.Middleware = nil
			next := &yard{World: plain.Beside(), js: y.js, parent: y.parent}
			made, err := y.enroll()
			if err != nil || y.parts(made.Grant.UID) != 2 {
				t.Fatalf("enrolled with %d parts, %v", y.parts(made.Grant.UID), err)
			}
			f.Harm = faults.Hold
			armed := inject.Arm(f)
			defer armed.Disarm()
			if status := y.Call("DELETE", "/v1/grants/"+y.parent.Owner+"/bot", nil, nil); status != http.StatusOK {
				t.Fatalf("revoke: %d", status)
			}
			await(t, armed.Struck(), "the removal")
			ctx, cancel := context.WithTimeout(context.Background(), world.Patience)
			defer cancel()
			closed := make(chan error, 1)
			go func() { closed <- y.Space.Close(ctx) }()
			y.Await("the space to close", func() bool { return y.Space.Status().State != messages.SpaceReady })
			armed.Disarm()
			if err := <-closed; err != nil {
				if err := y.Space.Close(ctx); err != nil {
					t.Errorf("the close says %v", err)
				}
			}
			next.Poll("everything to be removed", func() bool { return next.parts("") == 0 })
			var again messages.MachineEnrolled
			next.Poll("the name to be free", func() bool {
				again, err = next.enroll()
				if err != nil && !messages.Describe(err).Retryable && !errors.Is(err, messages.IncarnationStanding) {
					t.Fatal(err)
				}
				return err == nil
			})
			if again.Grant.UID == made.Grant.UID || next.parts(again.Grant.UID) != 2 || next.parts("") != 2 {
				t.Errorf("the next one is %s after %s, with %d of %d parts", again.Grant.UID, made.Grant.UID, next.parts(again.Grant.UID), next.parts(""))
			}
		})
	}
}

// A plane that is fenced and heals in the middle of an admission and of a registration
// costs neither: they need no claim.
func TestAFenceCostsNoAdmission(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	h := newRunner(t, inject)
	awaitReady(h.World)
	held := inject.Arm(faults.Fault{Actor: "plane/reader", Harm: faults.Hold, Message: messages.ReadInstance{}})
	defer held.Disarm()
	told := make(chan error, 2) // of both
	go func() { _, err := h.Space.AdmitRun(h.Context(), h.admit); told <- err }()
	await(t, held.Struck(), "a reading of the gate")
	before := h.Space.Status().Plane.Generation
	if _, _, err := h.Space.Kill(t.Context(), "plane/claim", "panic"); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := h.Space.RegisterHostInstance(h.Context(), "other", ranByName, h.admit.Controller.Principal)
		told <- err
	}()
	h.Poll("the plane to be held anew", func() bool {
		now := h.Space.Status().Plane
		return now.State == messages.PlaneActive && now.Generation > before
	})
	held.Disarm()
	for range 2 {
		if err := <-told; err != nil {
			t.Errorf("it is told %v", err)
		}
	}
	h.nothingLeft(t)
	h.goesOn(t)
}

// Calls of every kind that are inside when the space closes end in the order in which
// they came, before the plane does.
func TestCallsOfEveryKindEndInTheirOrder(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	y := openYard(t, inject)
	h := runnerOn(t, y.World)
	carol := y.Person("carol", "laptop", "demo.>")
	registers := func(ctx context.Context) error {
		_, err := h.Space.RegisterHostInstance(ctx, "other", ranByName, messages.Principal{Owner: carol.Grant.Owner, Actor: carol.Grant.Actor})
		return err
	}
	if err := registers(h.Context()); err != nil {
		t.Fatal(err)
	}
	carol.Connect(nats.NoReconnect()) // whom the next one evicts
	if _, err := h.Space.AdmitRun(h.Context(), h.admit); err != nil {
		t.Fatal(err)
	}
	events := h.Space.Events(context.Background())
	told := make(chan error, 3) // of each
	var order []string
	begin := func(f faults.Fault, do func(context.Context) error) *faults.Armed {
		f.Harm = faults.Hold
		armed := inject.Arm(f)
		go func() { told <- do(h.Context()) }()
		await(t, armed.Struck(), fmt.Sprintf("%T", f.Message))
		for _, a := range h.Space.Tree() {
			if strings.HasPrefix(a.Path, "operations/") && !slices.Contains(order, a.Path) {
				order = append(order, a.Path)
			}
		}
		return armed
	}
	all := []*faults.Armed{
		begin(faults.Fault{Actor: "plane/observer", Message: messages.ObserveServers{}}, registers),
		begin(faults.Fault{Actor: "plane/writer", Message: provisioning.JournalWrite{}, Nth: 2}, func(ctx context.Context) error {
			_, err := y.enroll()
			return err
		}),
		begin(faults.Fault{Actor: "plane/reader", Message: messages.ReadInstance{}}, func(ctx context.Context) error {
			_, err := h.Space.AttemptRun(ctx, h.attempt)
			return err
		}),
	}
	closed := make(chan error, 1)
	go func() { closed <- h.Space.Close(h.Context()) }()
	h.Await("the space to close", func() bool { return h.Space.Status().State != messages.SpaceReady })
	for range all {
		if err := <-told; err == nil || !messages.Describe(err).Retryable {
			t.Errorf("who is inside is told %v", err)
		}
	}
	for _, armed := range all {
		armed.Disarm()
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	var ended []string
	for e := range events {
		if e.Kind == "resourceended" && (slices.Contains(order, e.Path) || e.Path == "plane/reader") {
			ended = append(ended, e.Path)
		}
	}
	if len(order) != len(all) || !slices.Equal(ended, append(order, "plane/reader")) {
		t.Errorf("they came as %v and ended as %v", order, ended)
	}
}
