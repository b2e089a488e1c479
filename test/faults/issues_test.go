package faults_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

const issuerPath = "plane/issuer"

// TestIssues kills the issuer over every step of its way, one row after another on one
// stage, each with an instance of its own.
func TestIssues(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	w := world.Open(t, inject.Into)
	alice := w.Person("alice", "laptop", "demo.>")
	h := host{w, messages.Principal{Owner: alice.Grant.Owner, Actor: alice.Grant.Actor}}
	for n, r := range faults.Issues() {
		t.Run(r.Name(), func(t *testing.T) { issue(t, inject, h, alice, fmt.Sprintf("%026d", n), r) })
	}
}

func issue(t *testing.T, inject *faults.Injector, h host, alice world.Person, name string, r faults.IssueRow) {
	if _, err := h.Space.RegisterHostInstance(h.Context(), hosted, name, h.principal); err != nil {
		t.Fatal(err)
	}
	life := h.Actor(issuerPath).Generation
	if f, strikes := r.Fault(); strikes {
		defer inject.Arm(f).Disarm()
	}
	held := inject.Arm(faults.Fault{Actor: "plane/writer", Harm: faults.Hold, Message: messages.Enrol{}})
	defer held.Disarm()
	if r.Phase != faults.Midway {
		held.Disarm()
	}
	type told struct {
		messages.InstanceCredentialIssued
		err error
	}
	answer := make(chan told, 1)
	go func() {
		ctx := h.Context()
		if !r.Told {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, toldWithin)
			defer cancel()
		}
		got, err := h.Space.IssueInstanceCredential(ctx, hosted, name, 0, time.Minute)
		answer <- told{got, err}
	}()
	if r.Phase == faults.Midway {
		await(t, held.Struck(), "the root to be asked for")
		if _, _, err := h.Space.Kill(t.Context(), issuerPath, string(r.Way)); err != nil {
			t.Fatal(err)
		}
		h.AwaitLife(issuerPath, life+1)
		held.Disarm()
	}
	got := <-answer
	switch {
	case r.Told != (got.err == nil):
		t.Fatalf("the caller is told %v", got.err)
	case got.err != nil && (!got.Bearer.IsZero() || !messages.Describe(got.err).Retryable && !errors.Is(got.err, context.DeadlineExceeded)):
		t.Errorf("the caller is told %v", got.err)
	}
	if r.Way != faults.Lose {
		h.AwaitLife(issuerPath, life+1)
	}
	again, err := h.Space.IssueInstanceCredential(h.Context(), hosted, name, 0, time.Minute)
	if err != nil || got.err == nil && again.CredentialID != got.CredentialID {
		t.Fatalf("asked again: %+v, %v, first %+v", again, err, got)
	}
	h.With(alice.Grant, again.Bearer.Reveal()).Connect(nats.NoReconnect()).Close()
	next, err := h.Space.RegisterHostInstance(h.Context(), hosted, name, h.principal)
	if err != nil || next.Instance.Epoch != 1 || next.Revoked != 1 {
		t.Errorf("the next one: %+v, %v", next, err)
	}
	if _, err := h.With(alice.Grant, again.Bearer.Reveal()).Dial(nats.NoReconnect()); !world.Refused(err) {
		t.Errorf("the former one comes in: %v", err)
	}
	if state := h.Space.Status(); state.State != messages.SpaceReady {
		t.Errorf("the space is %+v", state)
	}
}
