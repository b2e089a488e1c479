package run_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/run"
	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
)

// Of the first attempt, and each that follows a recorded one, nothing is signed but for
// whoever asked it.
func TestWhoMayDriveARun(t *testing.T) {
	ended := journal(t, map[string]int{"a": 1}, runjournal.NewEnded("failed"))
	for name, c := range map[string]struct {
		change  func(*rig, *messages.AttemptRun)
		journal *runjournal.History
		want    error
	}{
		"the first":                {},
		"not admitted":             {want: messages.RunNotAdmitted, change: func(_ *rig, a *messages.AttemptRun) { a.Run = runB }},
		"other instance":           {want: messages.RunNotAdmitted, change: func(_ *rig, a *messages.AttemptRun) { a.Controller.Instance = another }},
		"an older process":         {want: messages.InstanceSuperseded, change: func(_ *rig, a *messages.AttemptRun) { a.Controller.Epoch = 3 }},
		"the one after":            {want: messages.RunAttemptTaken, change: func(_ *rig, a *messages.AttemptRun) { a.Attempt = 2 }},
		"none":                     {want: messages.Malformed, change: func(_ *rig, a *messages.AttemptRun) { a.Attempt = 0 }},
		"it has ended":             {want: messages.RunEnded, journal: ended},
		"whose caller was retired": {want: messages.NotGranted, change: func(r *rig, _ *messages.AttemptRun) { r.book.who[alice] = messages.Authority{} }},
		"one key":                  {want: messages.Malformed, change: func(_ *rig, a *messages.AttemptRun) { a.Mediator = a.Driver }},
		"no key":                   {want: messages.Malformed, change: func(_ *rig, a *messages.AttemptRun) { a.Driver = "Ux" }},
		"no request":               {want: messages.Malformed, change: func(_ *rig, a *messages.AttemptRun) { a.Request = "short" }},
		"no takeover":              {want: messages.Malformed, change: func(_ *rig, a *messages.AttemptRun) { a.Takeover = "a.b" }},
		"59 s":                     {want: messages.Malformed, change: func(_ *rig, a *messages.AttemptRun) { a.Lifetime = 59 * time.Second }},
		"a minute":                 {change: func(_ *rig, a *messages.AttemptRun) { a.Lifetime = time.Minute }},
		"too long":                 {want: messages.Malformed, change: func(_ *rig, a *messages.AttemptRun) { a.Lifetime = standing + time.Second }},
		"a fraction":               {want: messages.Malformed, change: func(_ *rig, a *messages.AttemptRun) { a.Lifetime = 61*time.Second + 1 }},
		"served": {change: func(r *rig, a *messages.AttemptRun) {
			a.Served = r.signed(alan, runrequest.Resume, runrequest.Body{Run: runA})
		}},
		"served another": {want: messages.RunExceeded, change: func(r *rig, a *messages.AttemptRun) {
			a.Served = r.signed(alice, runrequest.Resume, runrequest.Body{Run: runB})
		}},
		"served a start": {want: messages.RunExceeded, change: func(r *rig, a *messages.AttemptRun) {
			a.Served = r.signed(alice, runrequest.Start, runrequest.Body{Run: runA})
		}},
		"served by who may not": {want: messages.RunExceeded, change: func(r *rig, a *messages.AttemptRun) {
			a.Served = r.signed(alan, runrequest.Resume, runrequest.Body{Run: runA})
			r.book.grant(alan, "demo.>")
		}},
		"served forged": {want: messages.RunUnwitnessed, change: func(r *rig, a *messages.AttemptRun) {
			a.Served = r.signed(alice, runrequest.Resume, runrequest.Body{Run: runA})
			a.Served.Signature = spoilt(a.Served.Signature)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.admitted(runA)
			ask, had := r.attempt(1), len(r.keysNow())
			if c.change != nil {
				c.change(r, &ask)
			}
			got, err := r.reserve(ask, c.journal)
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Fatalf("%v", err)
			}
			if written := len(r.keysNow()) - had; c.want != nil && written != 0 || c.want == nil && written == 0 {
				t.Errorf("%d rows are written", written)
			}
			if c.want != nil {
				return
			}
			again, err := r.reserve(ask, c.journal)
			if err != nil || again != got {
				t.Errorf("again: %+v, not %+v, %v", again, got, err)
			}
		})
	}
}

// Attempts are counted without a gap; another question for one that stands is refused, and
// so is every question for one that was followed.
func TestAttemptsFollowEachOther(t *testing.T) {
	r := newRig(t)
	r.admitted(runA)
	first, second := r.attempt(1), r.attempt(2)
	one, err := r.reserve(first, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*messages.AttemptRun){
		"another request":  func(a *messages.AttemptRun) { a.Request = second.Request },
		"another takeover": func(a *messages.AttemptRun) { a.Takeover = "other" },
		"another driver":   func(a *messages.AttemptRun) { a.Driver = second.Driver },
		"another mediator": func(a *messages.AttemptRun) { a.Mediator = second.Mediator },
		"another lifetime": func(a *messages.AttemptRun) { a.Lifetime = time.Minute },
		"one too far":      func(a *messages.AttemptRun) { a.Attempt = 3 },
	} {
		other := first
		change(&other)
		if _, err := r.reserve(other, nil); !errors.Is(err, messages.RunAttemptTaken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	grown := journal(t, map[string]int{"a": 1})
	if _, err := r.reserve(second, grown); err != nil {
		t.Fatal(err)
	}
	if _, err := r.reserve(first, grown); !errors.Is(err, messages.RunAttemptTaken) {
		t.Errorf("one that was followed: %v", err)
	}
	if _, err := r.reserve(r.attempt(3), nil); !errors.Is(err, messages.JournalDamaged) {
		t.Errorf("a journal that is shorter: %v", err)
	}
	r.desk.Replicas = 3
	if _, err := r.reserve(r.attempt(3), nil); !errors.Is(err, messages.Unproved) {
		t.Errorf("one of which that cannot be proved: %v", err)
	}
	shown, err := r.desk.Show(t.Context(), messages.ShowRun{Endpoint: jobs, Run: runA})
	if err != nil || len(shown.Attempts) != 2 || shown.Attempts[0] != one || shown.Attempts[1].Head != grown.Head() {
		t.Errorf("%+v, %v", shown, err)
	}
	r.clock = r.clock.Add(standing)
	if _, err := r.reserve(second, grown); !errors.Is(err, messages.CredentialExpired) {
		t.Errorf("one whose credentials ran out: %v", err)
	}
}

// A request to resume is good for one attempt.
func TestAResumeIsUsedOnce(t *testing.T) {
	r := newRig(t)
	r.admitted(runA)
	first, second := r.attempt(1), r.attempt(2)
	first.Served = r.signed(alice, runrequest.Resume, runrequest.Body{Run: runA})
	second.Served = first.Served
	if _, err := r.reserve(first, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.reserve(second, nil); !errors.Is(err, messages.RunRequestUsed) {
		t.Errorf("%v", err)
	}
	second.Served = r.signed(alice, runrequest.Resume, runrequest.Body{Run: runA})
	if _, err := r.reserve(second, nil); err != nil {
		t.Error(err)
	}
}

func TestOneOfTwoAttemptsWins(t *testing.T) {
	for range 50 {
		r := newRig(t)
		r.admitted(runA)
		asks := []messages.AttemptRun{r.attempt(1), r.attempt(1)}
		asks[1].Request = "another-question-of-22-characters"
		errs := make([]error, 2)
		var all sync.WaitGroup
		for i, ask := range asks {
			all.Go(func() { _, errs[i] = r.reserve(ask, nil) })
		}
		all.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("%v", errs)
		}
		for _, err := range errs {
			if err != nil && !errors.Is(err, messages.RunAttemptTaken) {
				t.Error(err)
			}
		}
	}
}

// Whatever becomes of the write, the same question gets the attempt, and no other does.
func TestAReservationMayBeCutShort(t *testing.T) {
	for _, how := range []fault{before, after, unsaid} {
		r := newRig(t)
		r.admitted(runA)
		ask, other := r.attempt(1), r.attempt(1)
		other.Request = "another-question-of-22-characters"
		ctx, die := context.WithCancel(t.Context())
		r.backend.next, r.backend.die = how, die
		_, _, err := r.desk.Reserve(ctx, ask, standing, &runjournal.History{})
		die()
		if how == unsaid && err != nil || how != unsaid && !errors.Is(err, messages.OutcomeUnknown) {
			t.Errorf("fault %d: %v", how, err)
		}
		if how != before {
			if _, err := r.reserve(other, nil); !errors.Is(err, messages.RunAttemptTaken) {
				t.Errorf("fault %d, another: %v", how, err)
			}
		}
		r.clock = r.clock.Add(time.Second)
		one, err := r.reserve(ask, nil)
		if err != nil || (how != before) != one.ReservedAt.Before(r.clock) {
			t.Errorf("fault %d, again: %+v, %v", how, one, err)
		}
	}
}

// An answer is bound to the pause that waited when it was given.
func TestWhoMayAnswerAPause(t *testing.T) {
	const one, two = "tokentokentokentokentoken1", "tokentokentokentokentoken2"
	waits := journal(t, runjournal.NewPause("a", one))
	settled := journal(t, runjournal.NewPause("a", one), runjournal.NewSettled("a", one, true))
	waitsAgain := journal(t, runjournal.NewPause("a", one), runjournal.NewSettled("a", one, false), runjournal.NewPause("a", two))
	r := newRig(t)
	r.admitted(runA)
	r.admitted(runB)
	answer := runrequest.Body{Run: runA, Step: "a"}
	amend := runrequest.Body{Run: runA, Step: "a", Amend: true}
	signed := func(p messages.Principal, b runrequest.Body) messages.RunRequest {
		return r.signed(p, runrequest.Answer, b)
	}
	once, change := signed(alice, answer), signed(alice, amend)
	forged := signed(alice, answer)
	forged.Payload, _ = runrequest.Body{Run: runA, Step: "b"}.Encode()
	for _, c := range []struct {
		name    string
		ask     messages.OperateRun
		journal *runjournal.History
		token   string
		want    error
	}{
		{"reads", messages.OperateRun{}, waits, "", nil},
		{"reads and amends", messages.OperateRun{Amend: true}, waits, "", messages.Malformed},
		{"reads on request", messages.OperateRun{Served: once}, waits, "", messages.Malformed},
		{"without a request", messages.OperateRun{Step: "a"}, waits, "", messages.RunUnwitnessed},
		{"another run's", messages.OperateRun{Step: "a", Served: signed(alice, runrequest.Body{Run: runB, Step: "a"})}, waits, "", messages.RunExceeded},
		{"another step's", messages.OperateRun{Step: "a", Served: signed(alice, runrequest.Body{Run: runA, Step: "b"})}, waits, "", messages.RunExceeded},
		{"an amendment's", messages.OperateRun{Step: "a", Served: signed(alice, amend)}, settled, "", messages.RunExceeded},
		{"another owner's", messages.OperateRun{Step: "a", Served: signed(bob, answer)}, waits, "", messages.RunExceeded},
		{"forged", messages.OperateRun{Step: "b", Served: forged}, waits, "", messages.RunUnwitnessed},
		{"a step that does not wait", messages.OperateRun{Step: "b", Served: signed(alice, runrequest.Body{Run: runA, Step: "b"})}, waits, "", messages.RunNotWaiting},
		{"one that is settled", messages.OperateRun{Step: "a", Served: signed(alice, answer)}, settled, "", messages.RunNotWaiting},
		{"an amendment before an answer", messages.OperateRun{Step: "a", Amend: true, Served: signed(alice, amend)}, waits, "", messages.RunNotWaiting},
		{"the answer", messages.OperateRun{Step: "a", Served: once}, waits, one, nil},
		{"the answer again", messages.OperateRun{Step: "a", Served: once}, waits, one, nil},
		{"the answer to the next pause", messages.OperateRun{Step: "a", Served: once}, waitsAgain, "", messages.RunRequestUsed},
		{"another answer to it", messages.OperateRun{Step: "a", Served: signed(alan, answer)}, waitsAgain, two, nil},
		{"an amendment", messages.OperateRun{Step: "a", Amend: true, Served: change}, settled, one, nil},
	} {
		c.ask.Controller, c.ask.Run, c.ask.Key = controller(), runA, public(t, newKey(t))
		token, err := r.desk.Operate(t.Context(), c.ask, c.journal)
		if token != c.token || !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %q, %v", c.name, token, err)
		}
	}
}

// Rows that are not what we wrote are refused, to the letter.
func FuzzRows(f *testing.F) {
	for _, seed := range []string{"{}", `{"v":1}`, `{"v":1,"endpoint":"jobs","run":"run-0000000000000000000000000000000a","by":"operator","reason":"","revokedAt":1,"w":"aaaaaaaaaaaaaaaaaaaaaaaaaa"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		rows := map[string]func(ledger.Row) error{
			run.AdmissionKey(jobs, runA):  func(r ledger.Row) error { _, err := run.DecodeAdmission(r); return err },
			run.RevocationKey(jobs, runA): func(r ledger.Row) error { _, err := run.DecodeRevocation(r); return err },
			run.AttemptKey(jobs, runA, 1): func(r ledger.Row) error { _, err := run.DecodeAttempt(r); return err },
		}
		read := 0
		for key, decode := range rows {
			err := decode(ledger.Row{Key: key, Value: value, Revision: 1})
			if err == nil {
				read++
			} else if !errors.Is(err, messages.RowCorrupt) {
				t.Errorf("%v", err)
			}
		}
		if read > 1 {
			t.Error("one row is read as two")
		}
	})
}
