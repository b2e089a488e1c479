package faults_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

const (
	ranBy     = "svc_runs"
	ranByName = "cccccccccccccccccccccccccc"
)

// TestRuns kills each actor of a run's admission and first attempt, over its way.
func TestRuns(t *testing.T) {
	t.Parallel()
	for _, r := range faults.Runs() {
		t.Run(r.Name(), func(t *testing.T) {
			t.Parallel()
			runRow(t, r)
		})
	}
}

// runner is a space in which somebody starts a run.
type runner struct {
	*world.World
	admit   messages.AdmitRun
	attempt messages.AttemptRun
}

func newRunner(t *testing.T, inject *faults.Injector) *runner {
	t.Helper()
	return runnerOn(t, world.Open(t, inject.Into))
}

// runnerOn is one of an open space.
func runnerOn(t *testing.T, w *world.World) *runner {
	t.Helper()
	owner := w.Grant("alice", "setup", "setup.>").Owner
	subject := runrequest.Subject{Endpoint: ranBy, Instance: runrequest.Any, Command: runrequest.Start, Nonce: runrequest.NewNonce(),
		Caller: messages.Principal{Owner: owner, Actor: "laptop"}}
	alice := w.Person("alice", "laptop", "demo.>", subject.Pattern())
	subject.UID = alice.Grant.UID
	who := messages.RunController{Endpoint: ranBy, Instance: ranByName, Principal: messages.Principal{Owner: owner, Actor: "runner"}}
	if _, err := w.Space.RegisterHostInstance(w.Context(), ranBy, ranByName, who.Principal); err != nil {
		t.Fatal(err)
	}
	pair, public := userKey(t)
	bound, err := w.Space.BindRunCaller(messages.BindRunCaller{Bearer: messages.NewSecret(alice.Token), Key: public})
	if err != nil {
		t.Fatal(err)
	}
	m, err := runrequest.Sign(pair, bound.Certificate, "main", subject, runrequest.Body{})
	if err != nil {
		t.Fatal(err)
	}
	run := fmt.Sprintf("run-%032x", 1)
	_, driver := userKey(t)
	_, mediator := userKey(t)
	return &runner{w, messages.AdmitRun{Controller: who, Run: run, Request: runrequest.Forward(m)}, messages.AttemptRun{Controller: who, Run: run,
		Request: "question-of-22-characters", Takeover: "t", Attempt: 1, Driver: driver, Mediator: mediator}}
}

func userKey(t *testing.T) (nkeys.KeyPair, string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return pair, public
}

func runRow(t *testing.T, r faults.RunRow) {
	inject := &faults.Injector{}
	h := newRunner(t, inject)
	ask := func(ctx context.Context) error { _, err := h.Space.AdmitRun(ctx, h.admit); return err }
	if r.Actor != faults.FirstAdmission {
		if err := ask(h.Context()); err != nil {
			t.Fatal(err)
		}
		ask = func(ctx context.Context) error { _, err := h.Space.AttemptRun(ctx, h.attempt); return err }
	}
	harm := map[faults.Way]faults.Harm{faults.Strike: faults.Throw, faults.Lose: faults.Drop}[r.Way]
	if harm != "" {
		armed := inject.Arm(faults.Fault{Actor: r.Actor, Harm: harm, Message: r.Message, Nth: r.Nth})
		defer armed.Disarm()
		defer await(t, armed.Struck(), "the fault")
	}
	held := inject.Arm(faults.Fault{Actor: "plane/reader", Harm: faults.Hold, Message: messages.ReadInstance{}})
	defer held.Disarm()
	if r.Phase != faults.Midway {
		held.Disarm()
	}
	told := make(chan error, 1)
	go func() {
		ctx := h.Context()
		if r.Way == faults.Lose && r.Phase == faults.Opening {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
		}
		told <- ask(ctx)
	}()
	if r.Phase == faults.Midway {
		await(t, held.Struck(), "a reading of the gate")
		if _, _, err := h.Space.Kill(t.Context(), r.Actor, string(r.Way)); err != nil {
			t.Fatal(err)
		}
	}
	err := <-told
	held.Disarm()
	if (err == nil) != r.Done {
		t.Errorf("the caller is told %v", err)
	}
	if err != nil && !messages.Describe(err).Retryable && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller is told %v", err)
	}
	h.nothingLeft(t)
	h.goesOn(t)
}

// A space that closes over a question ends it, in the order of its admission; the same
// question is answered by the next life.
func TestASpaceClosesOverARun(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	h := newRunner(t, inject)
	held := inject.Arm(faults.Fault{Actor: "plane/reader", Harm: faults.Hold, Message: messages.ReadInstance{}})
	defer held.Disarm()
	told := make(chan error, 1)
	go func() { _, err := h.Space.AdmitRun(h.Context(), h.admit); told <- err }()
	await(t, held.Struck(), "a reading of the gate")
	closed := make(chan error, 1)
	go func() { closed <- h.Space.Close(h.Context()) }()
	if err := <-told; !messages.Describe(err).Retryable {
		t.Errorf("the caller is told %v", err)
	}
	held.Disarm()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := h.Space.AdmitRun(h.Context(), h.admit); !errors.Is(err, messages.ServiceClosing) {
		t.Errorf("asked of what has closed: %v", err)
	}
	h.NoConnections()
	h.Start()
	h.goesOn(t)
}

// nothingLeft waits until neither an actor nor a connection of a question is there.
func (h *runner) nothingLeft(t *testing.T) {
	t.Helper()
	h.Poll("the actors to be gone", func() bool {
		for _, a := range h.Space.Tree() {
			if strings.HasPrefix(a.Path, "operations/") {
				return false
			}
		}
		for _, c := range h.Space.Connections() {
			if !c.Ended && strings.HasPrefix(c.Label, "cotal:run-") {
				return false
			}
		}
		return true
	})
	h.Poll("the space to be ready", func() bool { return h.Space.Status().State == messages.SpaceReady })
}

// goesOn asks the same, which is answered, and what contradicts it, which is not.
func (h *runner) goesOn(t *testing.T) {
	t.Helper()
	one, err := h.Space.AdmitRun(h.Context(), h.admit)
	if err != nil {
		t.Fatal(err)
	}
	if two, err := h.Space.AdmitRun(h.Context(), h.admit); err != nil || two.Revision != one.Revision {
		t.Errorf("%+v and %+v, %v", one, two, err)
	}
	other := h.admit
	other.Run = fmt.Sprintf("run-%032x", 2)
	if _, err := h.Space.AdmitRun(h.Context(), other); !errors.Is(err, messages.RunRequestUsed) {
		t.Errorf("another run: %v", err)
	}
	first, err := h.Space.AttemptRun(h.Context(), h.attempt)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := h.Space.AttemptRun(h.Context(), h.attempt); err != nil || !reflect.DeepEqual(second, first) {
		t.Errorf("the same question is answered differently: %v", err)
	}
	next := h.attempt
	_, next.Driver = userKey(t)
	if _, err := h.Space.AttemptRun(h.Context(), next); !errors.Is(err, messages.RunAttemptTaken) {
		t.Errorf("another driver: %v", err)
	}
	shown, err := h.Space.Run(h.Context(), messages.ShowRun{Endpoint: ranBy, Run: h.admit.Run})
	if err != nil || len(shown.Attempts) != 1 {
		t.Errorf("%+v, %v", shown, err)
	}
}
