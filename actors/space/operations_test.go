package space_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// records are the rows of a space, as somebody sees and writes them who owns its
// account.
func records(w *world.World) *ledger.Store {
	backend := stream.New(w.Owner("ctrl"), stream.Config{Space: "main", Replicas: 1, Instance: instance}, stream.NewLanes(1))
	return ledger.NewStore(backend, ledger.DefaultPatience())
}

// rows are all rows, by key, each with its revision.
func rows(w *world.World, of *ledger.Store) map[string]uint64 {
	w.Helper()
	keys, err := of.List(w.Context(), ">")
	if err != nil {
		w.Fatal(err)
	}
	all := map[string]uint64{}
	for _, key := range keys {
		row, _, err := of.Get(w.Context(), key)
		if err != nil {
			w.Fatal(err)
		}
		all[key] = row.Revision
	}
	return all
}

func principalOf(p world.Person) messages.Principal {
	return messages.Principal{Owner: p.Grant.Owner, Actor: p.Grant.Actor}
}

// mint derives a credential of somebody from a handle.
func mint(w *world.World, at *ledger.Store, p world.Person, id, handle string) error {
	w.Helper()
	found, err := ledger.NewReader(at, nil).Authority(w.Context(), messages.ReadAuthority{Principal: principalOf(p), Head: true})
	if err != nil {
		return err
	}
	_, err = ledger.NewWriter(at, ledger.Options{Instance: instance}).MintDescendant(w.Context(), ledger.MintDescendant{
		Principal: principalOf(p), UID: p.Grant.UID, Root: found.Head.Root.ID,
		ID: id, Handles: []ledger.Handle{{Issuer: "k1", ID: handle}}, Expires: time.Now().Add(time.Hour),
	})
	return err
}

func awaitPlane(w *world.World) {
	w.Helper()
	w.Poll("the plane to be held", func() bool {
		s := w.Space.Status().Plane
		return s.State == messages.PlaneActive && s.HeldByUs
	})
}

// Whatever the doors refuse changes nothing.
func TestWhatTheDoorsRefuse(t *testing.T) {
	t.Parallel()
	w := world.Open(t)
	awaitPlane(w)
	standby := w.Beside()
	alice, bob := w.Person("alice", "laptop", "demo.>"), w.Person("bob", "laptop", "demo.>")
	a, b := principalOf(alice), principalOf(bob)
	// An operation of somebody else, that is over.
	const taken = "tttttttttttttttttttttttttttt"
	if done, err := w.Space.Takeover(w.Context(), messages.BeginTakeover{ID: taken, Principal: b}); err != nil || done.Outcome.Epoch != 2 || done.By != "host" {
		t.Fatalf("takeover: %+v, %v", done, err)
	}
	nobody := messages.Principal{Owner: a.Owner, Actor: "nobody"}
	at := records(w)
	w.Poll("everything to be quiet", func() bool {
		all, err := w.Space.Operations(w.Context())
		return err == nil && len(all.Items) == 0
	})
	if err := mint(w, at, alice, "a", "h1"); err != nil {
		t.Fatal(err)
	}
	before := rows(w, at)
	retire := func(ask messages.AskRetirement) func(*world.World) error {
		return func(w *world.World) error { _, err := w.Space.Retire(w.Context(), ask); return err }
	}
	takeover := func(ask messages.BeginTakeover) func(*world.World) error {
		return func(w *world.World) error { _, err := w.Space.Takeover(w.Context(), ask); return err }
	}
	handle := func(issuer, id string) func(*world.World) error {
		return func(w *world.World) error {
			_, err := w.Space.RevokeHandle(w.Context(), messages.RevokeHandle{Issuer: issuer, ID: id})
			return err
		}
	}
	for name, c := range map[string]struct {
		ask  func(*world.World) error
		at   *world.World
		want messages.Error
	}{
		"retire who cannot be":           {retire(messages.AskRetirement{Principal: messages.Principal{Owner: "local", Actor: "auth"}}), w, messages.Malformed},
		"retire nobody":                  {retire(messages.AskRetirement{}), w, messages.Malformed},
		"retire who never was":           {retire(messages.AskRetirement{Principal: nobody}), w, messages.GrantNotFound},
		"retire another's life":          {retire(messages.AskRetirement{Principal: a, UID: bob.Grant.UID}), w, messages.IncarnationEnded},
		"retire no life":                 {retire(messages.AskRetirement{Principal: a, UID: "x"}), w, messages.Malformed},
		"retire another's life, standby": {retire(messages.AskRetirement{Principal: a, UID: bob.Grant.UID}), standby, messages.IncarnationEnded},
		"take over nobody":               {takeover(messages.BeginTakeover{}), w, messages.Malformed},
		"take over who never was":        {takeover(messages.BeginTakeover{Principal: nobody}), w, messages.IncarnationUnknown},
		"take over another's life":       {takeover(messages.BeginTakeover{Principal: a, UID: bob.Grant.UID}), w, messages.IncarnationEnded},
		"take over by another's id":      {takeover(messages.BeginTakeover{Principal: a, UID: alice.Grant.UID, ID: taken}), w, messages.OperationConflict},
		"take over by a retirement's id": {takeover(messages.BeginTakeover{Principal: a, ID: ledger.OperationOf(alice.Grant.UID)}), w, messages.Malformed},
		"take over by no id":             {takeover(messages.BeginTakeover{Principal: a, ID: "x"}), w, messages.Malformed},
		"take over from a standby":       {takeover(messages.BeginTakeover{Principal: a}), standby, messages.PlaneAway},
		"revoke no handle":               {handle("", "h"), w, messages.Malformed},
		"revoke every handle":            {handle("*", ">"), w, messages.Malformed},
		"revoke a handle that never was": {handle("k", "h"), w, messages.HandleNotFound},
		"revoke a handle from a standby": {handle("k1", "h1"), standby, messages.PlaneAway},
	} {
		if err := c.ask(c.at); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want.Reason)
		} else if c.want == messages.PlaneAway && messages.Describe(err).Next != "authplane status" {
			t.Errorf("%s: next is %q", name, messages.Describe(err).Next)
		}
	}
	if _, err := w.Space.Operation(w.Context(), "nnnnnnnnnnnnnnnnnnnnnnnnnnnn"); !errors.Is(err, messages.OperationNotFound) {
		t.Errorf("an operation that never was: %v", err)
	}
	if after := rows(w, at); !maps.Equal(before, after) {
		t.Errorf("the rows were %v and are %v", before, after)
	}
	// The other of the two finds what this one did.
	if found, err := standby.Space.Operation(w.Context(), taken); err != nil || found.Step != messages.StepDone {
		t.Errorf("the standby finds %+v, %v", found, err)
	}
	if again, err := standby.Space.Takeover(w.Context(), messages.BeginTakeover{ID: taken, Principal: b}); err != nil || again.Outcome.Epoch != 2 {
		t.Errorf("the same again, at the standby: %+v, %v", again, err)
	}
}

// Who leaves is told that it goes on, and who asks again joins it; a close tells
// whoever waits.
func TestWhoLeavesAnOperation(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	w := world.Open(t, inject.Into)
	awaitPlane(w)
	alice := w.Person("alice", "laptop", "demo.>")
	held := inject.Arm(faults.Fault{Actor: "plane/retirement/sweeper", Harm: faults.Hold})
	defer held.Disarm()
	ctx, leave := context.WithCancel(w.Context())
	left := make(chan error, 1)
	go func() {
		_, err := w.Space.Retire(ctx, messages.AskRetirement{Principal: principalOf(alice), By: "somebody"})
		left <- err
	}()
	<-held.Struck()
	leave()
	if err := <-left; !errors.Is(err, messages.OperationPending) || !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves is told %v", err)
	}
	short, cancel := context.WithTimeout(w.Context(), 2*time.Second)
	defer cancel()
	id := ledger.OperationOf(alice.Grant.UID)
	if last, err := w.Space.Retire(short, messages.AskRetirement{Principal: principalOf(alice)}); !errors.Is(err, messages.OperationPending) || last.ID != id {
		t.Errorf("who has little time is told %+v, %v", last, err)
	}
	if all, err := w.Space.Operations(w.Context()); err != nil || len(all.Items) != 1 || all.Items[0].ID != id || all.Items[0].By != "somebody" {
		t.Errorf("under way are %+v, %v", all, err)
	}
	joined := make(chan messages.OperationProgress, 1)
	go func() {
		done, err := w.Space.Retire(w.Context(), messages.AskRetirement{Principal: principalOf(alice), UID: alice.Grant.UID})
		if err != nil {
			t.Error(err)
		}
		joined <- done
	}()
	held.Disarm()
	if done := <-joined; done.ID != id || done.Step != messages.StepDone || done.By != "somebody" || len(done.Outcome.Servers) != 1 {
		t.Errorf("it ended as %+v", done)
	}
	waits := make(chan error, 1)
	go func() {
		_, err := w.Space.AwaitOperation(context.Background(), "nnnnnnnnnnnnnnnnnnnnnnnnnnnn")
		waits <- err
	}()
	w.Close()
	if err := <-waits; !errors.Is(err, messages.ServiceClosing) {
		t.Errorf("who waits at the close is told %v", err)
	}
	_, retired := w.Space.Retire(w.Context(), messages.AskRetirement{Principal: principalOf(alice)})
	_, taken := w.Space.Takeover(w.Context(), messages.BeginTakeover{Principal: principalOf(alice)})
	_, revoked := w.Space.RevokeHandle(w.Context(), messages.RevokeHandle{Issuer: "k", ID: "h"})
	_, listed := w.Space.Operations(w.Context())
	for _, err := range []error{retired, taken, revoked, listed} {
		if !errors.Is(err, messages.ServiceClosing) {
			t.Errorf("after the close: %v", err)
		}
	}
}

// A handle ends with all that was derived from it, across principals: their
// connections are dropped and judged anew, and nobody else's.
func TestAHandleIsRevokedThroughTheDoor(t *testing.T) {
	t.Parallel()
	w := world.Open(t)
	awaitPlane(w)
	at := records(w)
	var people []world.Person
	dropped := map[string]chan struct{}{}
	for i, sub := range []string{"alice", "bob", "carol"} {
		p := w.Person(sub, "laptop", "demo.>")
		people = append(people, p)
		for _, id := range []string{"a", "b"} {
			if err := mint(w, at, p, id, []string{"h1", "h1", "h2"}[i]); err != nil {
				t.Fatal(err)
			}
		}
		gone := make(chan struct{}, 1)
		dropped[sub] = gone
		p.Connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { gone <- struct{}{} }))
	}
	ask := messages.RevokeHandle{Issuer: "k1", ID: "h1"}
	done, err := w.Space.RevokeHandle(w.Context(), ask)
	holders := []messages.Principal{principalOf(people[0]), principalOf(people[1])}
	slices.SortFunc(holders, func(a, b messages.Principal) int { return slices.Compare([]string{a.Owner}, []string{b.Owner}) })
	if err != nil || done.Revoked != 4 || done.Dropped != 2 || !slices.Equal(done.Holders, holders) {
		t.Fatalf("it ended as %+v, %v", done, err)
	}
	for _, sub := range []string{"alice", "bob"} {
		select {
		case <-dropped[sub]:
		case <-time.After(world.Patience):
			t.Errorf("%s is not dropped", sub)
		}
	}
	select {
	case <-dropped["carol"]:
		t.Error("somebody else is dropped")
	default:
	}
	people[0].Connect() // whose root still stands
	if err := mint(w, at, people[0], "late", "h1"); !errors.Is(err, messages.HandleFrozen) {
		t.Errorf("derived from it after its end: %v", err)
	}
	again, err := w.Space.RevokeHandle(w.Context(), ask)
	if err != nil || again.Revoked != 4 || !slices.Equal(again.Holders, holders) {
		t.Errorf("again: %+v, %v", again, err)
	}
}
