package run_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/run"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
)

// What is refused writes nothing.
func TestWhoMayStartARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*rig, *messages.AdmitRun)
		want   error
	}{
		"signed": {},
		"for this instance": {change: func(r *rig, a *messages.AdmitRun) {
			a.Request = r.signed(alice, runrequest.Start, runrequest.Body{Bound: true, Instance: instance, Epoch: 4}, func(s *runrequest.Subject) { s.Instance = instance })
		}},
		"another principal of the owner's": {change: func(r *rig, a *messages.AdmitRun) { a.Request = r.signed(alan, runrequest.Start, runrequest.Body{}) }},
		"never published":                  {want: messages.RunUnwitnessed, change: func(r *rig, a *messages.AdmitRun) { a.Request = r.published(alice, runrequest.Body{}) }},
		"observed": {change: func(r *rig, a *messages.AdmitRun) {
			a.Request = r.published(alice, runrequest.Body{})
			r.see(a.Request)
		}},
		"observed with another payload": {want: messages.RunUnwitnessed, change: func(r *rig, a *messages.AdmitRun) {
			a.Request = r.published(alice, runrequest.Body{})
			r.see(a.Request)
			a.Request.Payload, _ = runrequest.Body{Input: []byte("1")}.Encode()
		}},
		"nobody observes": {want: messages.ObserverOff, change: func(r *rig, a *messages.AdmitRun) {
			a.Request = r.published(alice, runrequest.Body{})
			r.desk.Observed = nil
		}},
		"another payload": {want: messages.RunUnwitnessed, change: func(_ *rig, a *messages.AdmitRun) {
			a.Request.Payload, _ = runrequest.Body{Input: []byte("1")}.Encode()
		}},
		"another subject": {want: messages.RunUnwitnessed, change: func(_ *rig, a *messages.AdmitRun) { a.Request.Subject = subjectOf(alice, runrequest.Start).String() }},
		"another space": {want: messages.RunUnwitnessed, change: func(r *rig, a *messages.AdmitRun) {
			m, err := runrequest.Sign(r.keys[alice], r.certificate(alice), "other", subjectOf(alice, runrequest.Start), runrequest.Body{})
			if err != nil {
				t.Fatal(err)
			}
			a.Request = runrequest.Forward(m)
		}},
		"a forged signature":     {want: messages.RunUnwitnessed, change: func(_ *rig, a *messages.AdmitRun) { a.Request.Signature = spoilt(a.Request.Signature) }},
		"no signature":           {want: messages.RunUnwitnessed, change: func(_ *rig, a *messages.AdmitRun) { a.Request.Signature = "" }},
		"no certificate":         {want: messages.RunUnwitnessed, change: func(_ *rig, a *messages.AdmitRun) { a.Request.Certificate = "" }},
		"somebody's certificate": {want: messages.RunUnwitnessed, change: func(r *rig, a *messages.AdmitRun) { a.Request.Certificate = r.certificate(alan) }},
		"another's signature": {want: messages.RunUnwitnessed, change: func(r *rig, a *messages.AdmitRun) {
			m, err := runrequest.Sign(r.keys[alan], r.certificate(alan), "acme", subjectOf(alice, runrequest.Start), runrequest.Body{})
			if err != nil {
				t.Fatal(err)
			}
			a.Request = runrequest.Forward(m)
		}},
		"another authority's certificate": {want: messages.RunUnwitnessed, change: func(r *rig, a *messages.AdmitRun) { a.Request.Certificate = foreignCertificate(r) }},
		"a certificate that ran out":      {want: messages.RunUnwitnessed, change: func(r *rig, _ *messages.AdmitRun) { r.clock = r.clock.Add(time.Minute) }},
		"another command":                 {want: messages.RunExceeded, change: func(r *rig, a *messages.AdmitRun) { a.Request = r.signed(alice, runrequest.Answer, runrequest.Body{}) }},
		"names a run": {want: messages.RunExceeded, change: func(r *rig, a *messages.AdmitRun) {
			a.Request = r.signed(alice, runrequest.Start, runrequest.Body{Run: runA})
		}},
		"another service": {want: messages.RunExceeded, change: func(r *rig, a *messages.AdmitRun) {
			a.Request = r.signed(alice, runrequest.Start, runrequest.Body{}, func(s *runrequest.Subject) { s.Endpoint = "other" })
		}},
		"another instance": {want: messages.RunExceeded, change: func(r *rig, a *messages.AdmitRun) {
			a.Request = r.signed(alice, runrequest.Start, runrequest.Body{}, func(s *runrequest.Subject) { s.Instance = another })
		}},
		"bound to an older process": {want: messages.RunExceeded, change: func(r *rig, a *messages.AdmitRun) {
			a.Request = r.signed(alice, runrequest.Start, runrequest.Body{Bound: true, Instance: instance, Epoch: 3})
		}},
		"another owner":      {want: messages.RunExceeded, change: func(r *rig, a *messages.AdmitRun) { a.Request = r.signed(bob, runrequest.Start, runrequest.Body{}) }},
		"a grant without it": {want: messages.RunExceeded, change: func(r *rig, _ *messages.AdmitRun) { r.book.grant(alice, "demo.>") }},
		"a grant that no credential has room for": {want: messages.RunTooWide, change: func(r *rig, _ *messages.AdmitRun) {
			patterns := []string{"run.>"}
			for i := range 240 {
				patterns = append(patterns, fmt.Sprintf("demo.%03d.%s", i, strings.Repeat("x", 190)))
			}
			r.book.grant(alice, patterns...)
		}},
		"no grant": {want: messages.NotGranted, change: func(r *rig, _ *messages.AdmitRun) { r.book.who[alice] = messages.Authority{} }},
		"a grant that was revoked": {want: messages.NotGranted, change: func(r *rig, _ *messages.AdmitRun) {
			a := r.book.who[alice]
			a.Grant.State = messages.GrantRevoked
			r.book.who[alice] = a
		}},
		"another incarnation": {want: messages.IncarnationEnded, change: func(r *rig, _ *messages.AdmitRun) {
			a := r.book.who[alice]
			a.Grant.UID, a.Head.UID = uidOf(bob), uidOf(bob)
			r.book.who[alice] = a
		}},
		"a gate that is shut": {want: messages.GateShut, change: func(r *rig, _ *messages.AdmitRun) {
			a := r.book.who[alice]
			a.Head.State = messages.HeadFrozen
			r.book.who[alice] = a
		}},
		"no instance": {want: messages.InstanceNotFound, change: func(r *rig, _ *messages.AdmitRun) { delete(r.book.gates, instance) }},
		"a frozen instance": {want: messages.InstanceNotOpen, change: func(r *rig, _ *messages.AdmitRun) {
			gate(r, func(g *messages.Instance) { g.State = messages.InstanceFrozen })
		}},
		"an older process":   {want: messages.InstanceSuperseded, change: func(_ *rig, a *messages.AdmitRun) { a.Controller.Epoch = 3 }},
		"another's instance": {want: messages.InstanceForeign, change: func(_ *rig, a *messages.AdmitRun) { a.Controller.Principal = alan }},
		"no subject":         {want: messages.Malformed, change: func(_ *rig, a *messages.AdmitRun) { a.Request.Subject = "jobs.start" }},
		"an unknown field":   {want: messages.Malformed, change: func(_ *rig, a *messages.AdmitRun) { a.Request.Payload = []byte(`{"v":1,"ceiling":[">"]}`) }},
		"no run":             {want: messages.Malformed, change: func(_ *rig, a *messages.AdmitRun) { a.Run = "run-1" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ask := messages.AdmitRun{Controller: controller(), Run: runA, Request: r.signed(alice, runrequest.Start, runrequest.Body{})}
			if c.change != nil {
				c.change(r, &ask)
			}
			got, err := r.desk.Admit(t.Context(), ask)
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Fatalf("%v", err)
			}
			if written := len(r.keysNow()); c.want != nil && written != 0 || c.want == nil && written != 2 {
				t.Errorf("%d rows are written", written)
			}
			if c.want == nil && (got.Revision == 0 || !reflect.DeepEqual(got.Admission.Subscribe, []string{"demo.>"}) || got.Admission.GrantRevision != 3) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func gate(r *rig, change func(*messages.Instance)) {
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	g := r.book.gates[instance]
	change(&g)
	r.book.gates[instance] = g
}

func foreignCertificate(r *rig) string {
	signer, err := nkeys.CreateAccount()
	if err != nil {
		r.t.Fatal(err)
	}
	foreign, err := run.NewCertificates("acme", signer)
	if err != nil {
		r.t.Fatal(err)
	}
	c, err := foreign.Sign(run.Caller{Principal: alice, UID: uidOf(alice), Key: public(r.t, r.keys[alice]), Expires: r.clock.Add(time.Minute)})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// The same question has the same answer, whatever happened since; one that contradicts it
// is refused.
func TestTheSameRequestIsAnsweredTheSame(t *testing.T) {
	r := newRig(t)
	q := r.signed(alice, runrequest.Start, runrequest.Body{})
	first, err := r.admit(runA, q)
	if err != nil {
		t.Fatal(err)
	}
	again := func(what string) {
		t.Helper()
		second, err := r.admit(runA, q)
		if err != nil || second.Revision != first.Revision || !same(second.Admission, first.Admission) {
			t.Errorf("%s: %+v, %v", what, second, err)
		}
	}
	again("at once")
	r.clock = r.clock.Add(time.Hour)
	again("with a certificate that ran out")
	r.book.grant(alice, "less.>")
	again("with a grant that was narrowed")
	r.book.grant(alice, "demo.>", runrequest.Subject{Endpoint: jobs, Command: "*", Caller: alice}.Pattern())
	if _, err := r.admit(runB, q); !errors.Is(err, messages.RunRequestUsed) {
		t.Errorf("another run: %v", err)
	}
	further := r.signed(alice, runrequest.Start, runrequest.Body{})
	if second, err := r.admit(runA, further); err != nil || second.Revision != first.Revision {
		t.Errorf("a further request of his: %+v, %v", second, err)
	}
	if _, err := r.admit(runB, further); !errors.Is(err, messages.RunRequestUsed) {
		t.Errorf("which is used by it: %v", err)
	}
	if _, err := r.admit(runA, r.signed(alan, runrequest.Start, runrequest.Body{})); !errors.Is(err, messages.RunConflict) {
		t.Errorf("another caller: %v", err)
	}
	other := controller()
	other.Instance = another
	if _, err := r.desk.Admit(t.Context(), messages.AdmitRun{Controller: other, Run: runA, Request: r.signed(alice, runrequest.Start, runrequest.Body{})}); !errors.Is(err, messages.RunConflict) {
		t.Errorf("another instance: %v", err)
	}
	if n := len(r.keysNow()); n != 3 {
		t.Errorf("%d rows: %v", n, r.keysNow())
	}
}

// What was observed once is not needed again: a lost answer is asked for anew, also of a
// process that saw nothing.
func TestALostAnswerNeedsNoNewObservation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.published(alice, runrequest.Body{})
	r.see(q)
	ctx, die := context.WithCancel(t.Context())
	r.backend.next, r.backend.die = after, die
	if _, err := r.desk.Admit(ctx, messages.AdmitRun{Controller: controller(), Run: runA, Request: q}); !errors.Is(err, messages.OutcomeUnknown) {
		t.Fatalf("%v", err)
	}
	r.desk.Observed = run.NewObservations(nil)
	if got, err := r.admit(runA, q); err != nil || got.Admission.Witness != messages.WitnessObservation {
		t.Errorf("%+v, %v", got, err)
	}
}

// Whatever becomes of the write, the run is admitted once, and the answer is found again.
func TestAnAdmissionMayBeCutShort(t *testing.T) {
	for _, how := range []fault{before, after, unsaid} {
		r := newRig(t)
		q := r.signed(alice, runrequest.Start, runrequest.Body{})
		ctx, die := context.WithCancel(t.Context())
		r.backend.next, r.backend.die = how, die
		_, err := r.desk.Admit(ctx, messages.AdmitRun{Controller: controller(), Run: runA, Request: q})
		die()
		if how == unsaid && err != nil || how != unsaid && !errors.Is(err, messages.OutcomeUnknown) {
			t.Errorf("fault %d: %v", how, err)
		}
		one, err := r.admit(runA, q)
		if err != nil {
			t.Errorf("fault %d, again: %v", how, err)
		}
		two, err := r.admit(runA, q)
		if err != nil || two.Revision != one.Revision || len(r.keysNow()) != 2 {
			t.Errorf("fault %d: %+v and %+v, %v: %v", how, one, two, err, r.keysNow())
		}
	}
}

// Whoever is overtaken while his question is answered hears nothing, and the one who
// overtook him finds what was written.
func TestAnOvertakenControllerHearsNothing(t *testing.T) {
	r := newRig(t)
	q := r.signed(alice, runrequest.Start, runrequest.Body{})
	r.book.after = func() { gate(r, func(g *messages.Instance) { g.Epoch = 5 }) }
	if _, err := r.admit(runA, q); !errors.Is(err, messages.InstanceSuperseded) {
		t.Fatalf("%v", err)
	}
	r.book.after = nil
	now := controller()
	now.Epoch = 5
	if _, err := r.desk.Admit(t.Context(), messages.AdmitRun{Controller: now, Run: runA, Request: q}); err != nil {
		t.Error(err)
	}
}

// Two controllers race for one run, or with one request: there is one admission.
func TestOneOfTwoAdmissionsWins(t *testing.T) {
	for range 50 {
		r := newRig(t)
		asks := []messages.AdmitRun{
			{Controller: controller(), Run: runA, Request: r.signed(alice, runrequest.Start, runrequest.Body{})},
			{Controller: controller(), Run: runA, Request: r.signed(alan, runrequest.Start, runrequest.Body{})},
		}
		asks = append(asks, messages.AdmitRun{Controller: controller(), Run: runB, Request: asks[0].Request})
		errs := make([]error, len(asks))
		var all sync.WaitGroup
		for i, ask := range asks {
			all.Go(func() { _, errs[i] = r.desk.Admit(t.Context(), ask) })
		}
		all.Wait()
		won := map[bool]int{}
		for i, err := range errs {
			won[err == nil]++
			if err != nil && !errors.Is(err, messages.RunConflict) && !errors.Is(err, messages.RunRequestUsed) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if won[true] == 0 || errs[0] == nil && (errs[1] == nil || errs[2] == nil) {
			t.Errorf("%v", errs)
		}
	}
}

func TestRevokingARun(t *testing.T) {
	r := newRig(t)
	revoke := func(by messages.Principal, admin bool, why string) (messages.RunRevocation, error) {
		return r.desk.Revoke(t.Context(), messages.RevokeRun{Endpoint: jobs, Run: runA, Reason: why, By: by, Admin: admin})
	}
	if _, err := revoke(alice, false, ""); !errors.Is(err, messages.RunNotFound) {
		t.Errorf("before it was admitted: %v", err)
	}
	r.admitted(runA)
	if _, err := revoke(bob, false, "mine"); !errors.Is(err, messages.RunExceeded) || len(r.keysNow()) != 2 {
		t.Errorf("another owner: %v", err)
	}
	if _, err := revoke(alice, false, "two\nlines"); !errors.Is(err, messages.Malformed) {
		t.Errorf("%v", err)
	}
	ctx, die := context.WithCancel(t.Context())
	r.backend.next, r.backend.die = unsaid, die
	defer die()
	first, err := r.desk.Revoke(ctx, messages.RevokeRun{Endpoint: jobs, Run: runA, Reason: "enough", By: bob, Admin: true})
	if err != nil || first.By != bob.String() {
		t.Fatalf("an admin: %+v, %v", first, err)
	}
	r.clock = r.clock.Add(time.Hour)
	for _, by := range []messages.Principal{alice, {}} {
		second, err := revoke(by, false, "more")
		if err != nil || second != first {
			t.Errorf("the first one's stays: %+v, %v", second, err)
		}
	}
	if _, err := r.reserve(r.attempt(1), nil); !errors.Is(err, messages.RunRevoked) {
		t.Errorf("an attempt: %v", err)
	}
	shown, err := r.desk.Show(t.Context(), messages.ShowRun{Endpoint: jobs, Run: runA})
	if err != nil || shown.Revoked != first || len(shown.Attempts) != 0 {
		t.Errorf("%+v, %v", shown, err)
	}
}

// What is not what we wrote is named, and hides no other.
func TestRunsThatCannotBeRead(t *testing.T) {
	r := newRig(t)
	r.admitted(runA)
	bad := run.AdmissionKey(jobs, runB)
	if _, err := r.desk.Records.Apply(t.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Create(bad, []byte("{}"))}}); err != nil {
		t.Fatal(err)
	}
	all, err := r.desk.List(t.Context(), messages.ListRuns{Endpoint: jobs})
	if err != nil || len(all.Items) != 1 || !reflect.DeepEqual(all.Unreadable, []string{bad}) {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := r.desk.Show(t.Context(), messages.ShowRun{Endpoint: jobs, Run: runB}); !errors.Is(err, messages.RowCorrupt) {
		t.Errorf("%v", err)
	}
}
