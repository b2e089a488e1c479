package space_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
	"github.com/cotal-ai/authplane/test/faults"
)

// Whoever asks how a service is waits for no longer than he wants to, neither for a
// connection that does not open nor for one that does not close.
func TestAReaderOfReadinessLeaves(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	place := h.assign("billing", instance)
	h.serve("billing", instance, 0)
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	opening := h.injector.Arm(faults.Fault{Actor: "readiness/billing-1", Harm: faults.Hold, Message: &supervisor.Open{}})
	defer opening.Disarm()
	told := make(chan error, 1)
	ctx := soon()
	go func() { _, err := h.Space.Readiness(ctx, place); told <- err }()
	<-opening.Struck()
	<-ctx.Done()
	if err := <-told; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who left the opening: %v", err)
	}
	if live, _ := h.kept(); len(live) != 0 {
		t.Errorf("it opened over the fault: %v", live) // else the test says nothing
	}
	opening.Disarm()
	if got, err := h.Space.Readiness(h.Context(), place); err != nil || !got.Serving {
		t.Errorf("after it has opened: %+v, %v", got, err)
	}
	closing := h.injector.Arm(faults.Fault{Actor: "readiness/billing-1", Harm: faults.Hold, Message: &supervisor.Close{}})
	defer closing.Disarm()
	next := h.assign("mail", others)
	h.serve("mail", others, 0)
	ctx = soon()
	read := make(chan messages.Readiness, 1)
	go func() {
		got, err := h.Space.Readiness(ctx, next)
		if err != nil {
			t.Errorf("beside a close that hangs: %v", err)
		}
		read <- got
	}()
	<-closing.Struck()
	if got := <-read; !got.Serving {
		t.Errorf("beside a close that hangs: %+v", got)
	}
	closing.Disarm()
	h.Poll("one connection to be left", func() bool { live, _ := h.kept(); return len(live) == 1 && live[0] == mail })
	for range 2 { // the second finds nothing to close
		if _, err := h.Space.Readiness(h.Context(), next); err != nil {
			t.Error(err)
		}
	}
	if problems := h.Space.Status().Problems; len(problems) != 0 {
		t.Errorf("it says %q", problems)
	}
}

// Reads race two hundred changes of the assignment: each is answered or told that it is
// late, and at the end there is one connection and nobody waits.
func TestReadsRaceTheAssignment(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	places := []messages.PlatformPlace{h.assign("billing", instance), h.assign("mail", others)}
	h.serve("billing", instance, 0)
	h.serve("mail", others, 0)
	assign := func(n int) messages.PlatformPlace {
		h.mu.Lock()
		defer h.mu.Unlock()
		at := places[n%2]
		h.assigned.Revision++
		h.assigned.Endpoint, h.assigned.Instance, at.Revision = at.Endpoint, at.Instance, h.assigned.Revision
		return at
	}
	read := func(at messages.PlatformPlace) {
		got, err := h.Space.Readiness(h.Context(), at)
		switch {
		case errors.Is(err, messages.NotAssigned):
		case err != nil:
			t.Errorf("%s: %v", at.Endpoint, err)
		case !got.Serving || got.Endpoint != at.Endpoint:
			t.Errorf("%s: %+v", at.Endpoint, got)
		}
	}
	read(assign(0))
	read(assign(1))
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	for n := range 200 {
		at := assign(n)
		for range 3 {
			all.Go(func() { read(at) })
		}
		if n%10 == 0 { // it is read under way, and between
			all.Wait()
		}
	}
	all.Wait()
	last := assign(1)
	read(last)
	if live, _ := h.kept(); len(live) != 1 || live[0] != mail {
		t.Errorf("connected as %v", live)
	}
	if problems := h.Space.Status().Problems; len(problems) != 0 {
		t.Errorf("it says %q", problems)
	}
	h.Poll("nobody to wait any more", func() bool { return runtime.NumGoroutine() <= before+64 }) // other tests run beside it
}

// A platform that hangs or dies over an answer takes nobody with it: who asks leaves when
// he wants to, everything else goes on, and the space closes.
func TestAPlatformTakesNobodyWithIt(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	place := h.assignAs("ctl", others, space.ControllerPrincipal(h.Space.PlatformOwner(), others))
	alice := h.Person("alice", "laptop", "demo.>")
	lives := h.Actor("plane/issuer").Generation

	prepare := controllerOf(t, place, messages.DoorPrepare, "p")
	over := make(chan struct{})
	h.harm(func(asked int) {
		if asked > 1 { // over the issuer, past the door
			panic("the platform is lost")
		}
	})
	if got, err := h.Space.AskPlatformController(h.Context(), place, prepare); !errors.Is(err, messages.PlatformAway) || len(got.Credentials) != 0 {
		t.Errorf("it died over its answer: %+v, %v", got, err)
	}
	h.harm(func(asked int) {
		if asked > 1 {
			<-over
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if got, err := h.Space.AskPlatformController(ctx, place, prepare); err == nil || len(got.Credentials) != 0 {
		t.Errorf("it hangs: %+v, %v", got, err)
	}
	alice.Connect().Close()
	if _, err := h.Space.RegisterHostInstance(h.Context(), "other", instance, messages.Principal{Owner: h.Space.PlatformOwner(), Actor: "svc"}); err != nil {
		t.Errorf("beside it: %v", err)
	}
	if now := h.Actor("plane/issuer").Generation; now != lives {
		t.Errorf("the issuer lives for the %d. time, before %d", now, lives)
	}
	h.harm(func(int) { <-over })
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := h.Space.Readiness(ctx, place); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it hangs over readiness: %v", err)
	}
	h.Close()
	close(over)
}

// What could be no instance is none, also where the platform has assigned it.
func TestAPlatformThatRaves(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	good := h.assign("billing", instance)
	for name, c := range map[string]struct{ endpoint, instance string }{
		"a wildcard":         {"*", instance},
		"everything":         {">", instance},
		"two tokens":         {"billing.mail", instance},
		"no endpoint":        {"", instance},
		"no instance":        {"billing", ""},
		"any instance":       {"billing", "*"},
		"a long endpoint":    {strings.Repeat("x", 1<<20), instance},
		"a long instance":    {"billing", strings.Repeat("a", 1<<20)},
		"another alphabet":   {"billing", strings.Repeat("б", 26)},
		"a line's end":       {"billing\r\nPUB x 0", instance},
		"one never heard of": {"billing", others},
	} {
		at := good
		at.Endpoint, at.Instance = c.endpoint, c.instance
		h.mu.Lock()
		h.assigned.Endpoint, h.assigned.Instance = c.endpoint, c.instance
		h.mu.Unlock()
		_, read := h.Space.Readiness(h.Context(), at)
		_, repaired := h.Space.RepairPlatformInstance(h.Context(), at)
		_, evicted := h.Space.EvictPlatformFamily(h.Context(), at, []messages.Principal{{Owner: h.Space.PlatformOwner(), Actor: "svc"}})
		for _, err := range []error{read, repaired, evicted} {
			if want := map[bool]error{true: messages.InstanceNotFound, false: messages.Malformed}[c.instance == others]; !errors.Is(err, want) || len(err.Error()) > 1000 {
				t.Errorf("%s: %.300v", name, err)
			}
		}
	}
	if _, all := h.kept(); len(all) != 0 {
		t.Errorf("it has opened %v", all)
	}
	if state := h.Space.Status(); state.State != messages.SpaceReady || len(state.Problems) != 0 {
		t.Errorf("the space is %+v", state)
	}
}

// harm has something be done at each question from now on, by its number.
func (h *host) harm(do func(asked int)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked := 0
	h.harms = func() {
		h.mu.Lock()
		asked++
		n := asked
		h.mu.Unlock()
		do(n)
	}
}
