package runjournal_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/messages"
)

// delivered is the journal of a run as it comes to the inbox of a driver.
func (s *stage) delivered(t *testing.T, run, inbox string, head uint64) *runjournal.Delivered {
	t.Helper()
	d, err := runjournal.Deliver(s.nc, inbox, head)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	_, err = s.js.CreateOrUpdatePushConsumer(t.Context(), runjournal.StreamName("acme"), jetstream.ConsumerConfig{Name: run, FilterSubject: runjournal.Subject("acme", run),
		DeliverSubject: inbox + "." + runjournal.ReplayToken, AckPolicy: jetstream.AckNonePolicy})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A driver takes a journal that is delivered to it, what the former one appends meanwhile
// included.
func TestAJournalIsTakenAsItIsDelivered(t *testing.T) {
	s := newStage(t)
	run := s.run()
	first := s.delivered(t, run, "_INBOX_one", 0)
	old, err := runjournal.Take(t.Context(), first, s.journal(t, run), taking(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if err := s.js.DeleteConsumer(t.Context(), runjournal.StreamName("acme"), run); err != nil {
		t.Fatal(err)
	}
	var head uint64
	for i := range 3 {
		r, err := old.Append(t.Context(), map[string]int{"step": i})
		if err != nil {
			t.Fatal(err)
		}
		head = r.Sequence
	}
	late := 2
	from := meddling{s.delivered(t, run, "_INBOX_two", head), func() {
		if late--; late >= 0 {
			if _, err := old.Append(t.Context(), map[string]int{"late": late}); err != nil {
				t.Fatal(err)
			}
		}
	}}
	next := taking(2)
	next.Known = head
	j, err := runjournal.Take(t.Context(), from, s.journal(t, run), next)
	if err != nil {
		t.Fatal(err)
	}
	h := j.History()
	if got := entries(&h); got != `@1 {"step":0} {"step":1} {"step":2} {"late":1} {"late":0} @2` {
		t.Errorf("it replayed %s", got)
	}
	if _, err := old.Append(t.Context(), struct{}{}); !errors.Is(err, messages.JournalSuperseded) {
		t.Errorf("the former driver: %v", err)
	}
}

// What is dropped on the way is a hole, and something else that arrives no record.
func TestADeliveryThatIsNotWholeIsRefused(t *testing.T) {
	s := newStage(t)
	run := s.run()
	old, err := runjournal.Take(t.Context(), s.journal(t, run), s.journal(t, run), taking(1))
	if err != nil {
		t.Fatal(err)
	}
	r, err := old.Append(t.Context(), struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	from := s.delivered(t, run, "_INBOX_one", r.Sequence)
	if _, err := from.Read(t.Context(), 0); err != nil { // the delivery is over
		t.Fatal(err)
	}
	if _, err := old.Append(t.Context(), struct{}{}); err != nil {
		t.Fatal(err)
	}
	if _, err := runjournal.Take(t.Context(), from, s.journal(t, run), taking(2)); !errors.Is(err, messages.JournalDamaged) {
		t.Errorf("without its beginning: %v", err)
	}
	forged, err := runjournal.Deliver(s.nc, "_INBOX_three", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.nc.Publish("_INBOX_three."+runjournal.ReplayToken, activation(run, 0, 1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := runjournal.Take(t.Context(), forged, s.journal(t, run), taking(2)); !errors.Is(err, messages.JournalDamaged) {
		t.Errorf("from somebody else: %v", err)
	}
}
