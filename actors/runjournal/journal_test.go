package runjournal_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/messages"
)

// What is not whole is never resumed.
func TestAJournalThatIsNotWholeIsRefused(t *testing.T) {
	s := newStage(t)
	other := s.run()
	for name, c := range map[string]struct {
		write func(run string, put func([]byte) uint64)
		known uint64
		want  error
	}{
		"whole":            {write: func(run string, put func([]byte) uint64) { put(activation(run, 0, 1, 0)); put(step(run, 1, `{"a":1}`)) }},
		"a hole":           {write: func(run string, put func([]byte) uint64) { put(activation(run, 0, 1, 0)); put(step(run, 2, `{}`)) }, want: messages.JournalDamaged},
		"no activation":    {write: func(run string, put func([]byte) uint64) { put(step(run, 0, `{}`)) }, want: messages.JournalDamaged},
		"no beginning":     {write: func(run string, put func([]byte) uint64) { put(step(run, 1, `{}`)) }, want: messages.JournalDamaged},
		"replayed genesis": {write: func(run string, put func([]byte) uint64) { put(activation(run, 0, 1, 7)) }, want: messages.JournalDamaged},
		"another run's":    {write: func(run string, put func([]byte) uint64) { put(activation(other, 0, 1, 0)) }, want: messages.JournalDamaged},
		"not replayed": {write: func(run string, put func([]byte) uint64) {
			at := put(activation(run, 0, 1, 0))
			put(activation(run, 1, 2, at-1))
		}, want: messages.JournalDamaged},
		"a lease that went": {write: func(run string, put func([]byte) uint64) {
			at := put(activation(run, 0, 2, 0))
			put(activation(run, 1, 1, at))
		}, want: messages.JournalDamaged},
		"garbage": {write: func(run string, put func([]byte) uint64) { put(activation(run, 0, 1, 0)); put([]byte("{}")) }, want: messages.JournalDamaged},
		"nothing": {write: func(run string, put func([]byte) uint64) { put(activation(run, 0, 1, 0)); put(nil) }, want: messages.JournalDamaged},
		"behind its end": {write: func(run string, put func([]byte) uint64) {
			put(activation(run, 0, 1, 0))
			put(step(run, 1, `{"type":"run.ended","outcome":"failed"}`))
			put(step(run, 2, `{}`))
		}, want: messages.JournalDamaged},
		"shortened": {write: func(run string, put func([]byte) uint64) { put(activation(run, 0, 1, 0)) }, known: 1 << 40, want: messages.JournalDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			run := s.run()
			c.write(run, func(data []byte) uint64 {
				ack, err := s.js.Publish(t.Context(), runjournal.Subject("acme", run), data)
				if err != nil {
					t.Fatal(err)
				}
				return ack.Sequence
			})
			next := taking(3)
			next.Known = c.known
			_, err := runjournal.Take(t.Context(), s.journal(t, run), s.journal(t, run), next)
			if !errors.Is(err, c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestWhoMayTakeAJournal(t *testing.T) {
	s := newStage(t)
	begun, empty, ended := s.run(), s.run(), s.run()
	for _, run := range []string{begun, ended} {
		j, err := runjournal.Take(t.Context(), s.journal(t, run), s.journal(t, run), runjournal.Taking{Mode: runjournal.New, Lease: runjournal.Lease{Holder: "a", Token: 5, Epoch: 2}})
		if err != nil {
			t.Fatal(err)
		}
		var last any = map[string]int{"step": 1}
		if run == ended {
			last = runjournal.NewEnded("completed")
		}
		if _, err := j.Append(t.Context(), last); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		run   string
		mode  runjournal.Mode
		lease runjournal.Lease
		want  error
	}{
		"new on an existing one":     {begun, runjournal.New, runjournal.Lease{Holder: "a", Token: 6}, messages.JournalStarted},
		"new again after more":       {begun, runjournal.New, runjournal.Lease{Holder: "a", Token: 5, Epoch: 2}, messages.JournalStarted},
		"existing on an empty one":   {empty, runjournal.Existing, runjournal.Lease{Holder: "a", Token: 1}, messages.JournalEmpty},
		"neither":                    {empty, "either", runjournal.Lease{Holder: "a", Token: 1}, messages.Malformed},
		"no mode":                    {empty, "", runjournal.Lease{Holder: "a", Token: 1}, messages.Malformed},
		"no holder":                  {empty, runjournal.New, runjournal.Lease{Token: 1}, messages.Malformed},
		"no token":                   {empty, runjournal.New, runjournal.Lease{Holder: "a"}, messages.Malformed},
		"a lower token":              {begun, runjournal.Existing, runjournal.Lease{Holder: "a", Token: 4, Epoch: 2}, messages.LeaseStale},
		"an equal one, other holder": {begun, runjournal.Existing, runjournal.Lease{Holder: "b", Token: 5, Epoch: 2}, messages.LeaseStale},
		"an equal one, other epoch":  {begun, runjournal.Existing, runjournal.Lease{Holder: "a", Token: 5, Epoch: 3}, messages.LeaseStale},
		"one that has ended":         {ended, runjournal.Existing, runjournal.Lease{Holder: "a", Token: 6}, messages.RunEnded},
		"the very same":              {begun, runjournal.Existing, runjournal.Lease{Holder: "a", Token: 5, Epoch: 2}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runjournal.Take(t.Context(), s.journal(t, c.run), s.journal(t, c.run), runjournal.Taking{Mode: c.mode, Lease: c.lease})
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%v", err)
			}
		})
	}
}

// What the former driver appends between replay and activation is replayed too; when it
// never ceases, or the lease went meanwhile, the journal is not taken.
func TestAStaleReplayIsRetried(t *testing.T) {
	s := newStage(t)
	gone := errors.New("the lease went")
	for name, c := range map[string]struct {
		late  int
		still func(context.Context) error
		want  error
	}{
		"twice":          {late: 2},
		"for ever":       {late: 99, want: messages.JournalMoving},
		"the lease went": {late: 1, still: func(context.Context) error { return gone }, want: gone},
	} {
		t.Run(name, func(t *testing.T) {
			run := s.run()
			old, err := runjournal.Take(t.Context(), s.journal(t, run), s.journal(t, run), taking(1))
			if err != nil {
				t.Fatal(err)
			}
			from := meddling{s.journal(t, run), func() {
				if c.late--; c.late >= 0 {
					if _, err := old.Append(t.Context(), map[string]int{"late": c.late}); err != nil {
						t.Fatal(err)
					}
				}
			}}
			next := taking(2)
			next.Still = c.still
			j, err := runjournal.Take(t.Context(), from, s.journal(t, run), next)
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Fatalf("%v", err)
			}
			if c.want != nil {
				return
			}
			h := j.History()
			if got := entries(&h); got != `@1 {"late":1} {"late":0} @2` {
				t.Errorf("it replayed %s", got)
			}
			if _, err := old.Append(t.Context(), struct{}{}); !errors.Is(err, messages.JournalSuperseded) {
				t.Errorf("the former driver: %v", err)
			}
		})
	}
}

// An acknowledgement that is lost ends this driver, and nothing that waited is sent; the
// driver may take the journal again, and finds what it wrote.
func TestAStalledDriverSendsNoMore(t *testing.T) {
	s := newStage(t)
	run := s.run()
	way := &frail{Sink: s.journal(t, run)}
	j, err := runjournal.Take(t.Context(), s.journal(t, run), way, taking(1))
	if err != nil {
		t.Fatal(err)
	}
	way.next = after
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := j.Append(t.Context(), map[string]int{"x": 1}); !errors.Is(err, messages.JournalStalled) {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	again := taking(1)
	again.Mode = runjournal.Existing
	j, err = runjournal.Take(t.Context(), s.journal(t, run), s.journal(t, run), again)
	if err != nil {
		t.Fatal(err)
	}
	h := j.History()
	if got := entries(&h); got != `@1 {"x":1} @1` {
		t.Errorf("it holds %s", got)
	}
}

// A new run whose activation was not acknowledged is begun again by the same driver.
func TestANewRunIsBegunAgain(t *testing.T) {
	s := newStage(t)
	run := s.run()
	if _, err := runjournal.Take(t.Context(), s.journal(t, run), &frail{s.journal(t, run), after}, taking(1)); !errors.Is(err, messages.JournalStalled) {
		t.Fatal(err)
	}
	if _, err := runjournal.Take(t.Context(), s.journal(t, run), s.journal(t, run), taking(1)); err != nil {
		t.Fatal(err)
	}
}

func TestAnEntryThatCannotBeWrittenFailsAlone(t *testing.T) {
	s := newStage(t)
	run := s.run()
	j, err := runjournal.Take(t.Context(), s.journal(t, run), s.journal(t, run), taking(1))
	if err != nil {
		t.Fatal(err)
	}
	for name, entry := range map[string]any{
		"a channel": make(chan int), "no object": 7, "a name twice": json.RawMessage(`{"a":1,"a":2}`), "deep below": json.RawMessage(`{"a":[{"b":1,"b":2}]}`),
		"nothing": nil, "reserved": map[string]string{"type": "run.other"}, "settled unasked": runjournal.NewSettled("s", "t", true),
		"no outcome": runjournal.NewEnded("maybe"), "too large": map[string]string{"a": string(make([]byte, runjournal.MaxRecord))},
		"a short token": runjournal.NewPause("s", "short"),
	} {
		if _, err := j.Append(t.Context(), entry); !errors.Is(err, messages.Malformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Append(gone, struct{}{}); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %v", err)
	}
	mine := map[string]string{"v": "before"}
	r, err := j.Append(t.Context(), mine)
	mine["v"] = "after"
	if err != nil || string(r.Entry) != `{"v":"before"}` || r.N != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := j.Append(t.Context(), runjournal.NewEnded("completed")); err != nil {
		t.Error(err)
	}
	if _, err := j.Append(t.Context(), struct{}{}); !errors.Is(err, messages.RunEnded) {
		t.Errorf("behind the end: %v", err)
	}
	j.Close()
}

func TestPausesWaitForTheirAnswer(t *testing.T) {
	s := newStage(t)
	run := s.run()
	j, err := runjournal.Take(t.Context(), s.journal(t, run), s.journal(t, run), taking(1))
	if err != nil {
		t.Fatal(err)
	}
	const one, two = "tokentokentokentokentoken1", "tokentokentokentokentoken2"
	ask := func(step string, amend bool, token string, want error) {
		t.Helper()
		h := j.History()
		got, err := h.State.Pause(step, amend)
		if got != token || !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s, amend %v: %q, %v", step, amend, got, err)
		}
	}
	write := func(entry any) {
		t.Helper()
		if _, err := j.Append(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
	}
	ask("a", false, "", messages.RunNotWaiting)
	write(runjournal.NewPause("a", one))
	ask("a", false, one, nil)
	ask("a", true, "", messages.RunNotWaiting)
	write(runjournal.NewSettled("a", one, true))
	ask("a", false, "", messages.RunNotWaiting)
	ask("a", true, one, nil)
	ask("b", true, "", messages.RunNotWaiting)
	write(runjournal.NewSettled("a", one, false)) // amended
	ask("a", true, "", messages.RunNotWaiting)
	write(runjournal.NewPause("a", two))
	ask("a", false, two, nil)
	write(runjournal.NewEnded("failed"))
	ask("a", false, "", messages.RunEnded)
}

func TestOnlyRunsHaveJournals(t *testing.T) {
	for _, run := range []string{"", "run-x", "run-0000000000000000000000000000000G", "run-00000000000000000000000000000000.x", "run-*", "00000000000000000000000000000000"} {
		if _, err := runjournal.Over(nil, "acme", run); !errors.Is(err, messages.Malformed) {
			t.Errorf("%q: %v", run, err)
		}
	}
}

func TestAStreamOfAnotherShapeIsRefused(t *testing.T) {
	s := newStage(t)
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"age":        func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"limit":      func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 9 },
		"roll-up":    func(c *jetstream.StreamConfig) { c.AllowRollup, c.DenyPurge = true, false },
		"memory":     func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"republish":  func(c *jetstream.StreamConfig) { c.RePublish = &jetstream.RePublish{Source: ">", Destination: "x.>"} },
		"work queue": func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := runjournal.StreamConfig("other", 1)
			change(&cfg)
			if _, err := s.js.CreateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			if err := runjournal.OpenStream(t.Context(), s.js, "other", 1); !errors.Is(err, messages.StreamDrifted) {
				t.Errorf("%v", err)
			}
			if err := s.js.DeleteStream(t.Context(), cfg.Name); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func FuzzARecordIsReadToTheLetter(f *testing.F) {
	run := "run-00000000000000000000000000000001"
	f.Add(activation(run, 0, 1, 0))
	f.Add(step(run, 1, `{"a":[1,{"b":null}]}`))
	f.Add([]byte(`{"v":1,"kind":"step","run":"run-00000000000000000000000000000001","n":1,"at":1,"entry":{},"x":1}`))
	f.Add([]byte(`{"v":1,"kind":"step","run":"run-00000000000000000000000000000001","n":1,"at":1,"entry":{}} `))
	f.Add([]byte(`{"kind":"step","kind":"activation"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := runjournal.Decode(data)
		if err != nil {
			if !errors.Is(err, messages.JournalDamaged) {
				t.Errorf("%v", err)
			}
			return
		}
		again, err := runjournal.Encode(r)
		if err != nil || string(again) != string(data) {
			t.Errorf("%q is read, and written as %q, %v", data, again, err)
		}
	})
}
