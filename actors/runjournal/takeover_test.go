package runjournal_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/messages"
)

// A driver dies at each record, before it was written, after, or with the
// acknowledgement lost; the successor replays, activates and goes on, and what the dead
// one still appends is refused.
func TestADriverMayDieAtEveryRecord(t *testing.T) {
	s := newStage(t)
	const steps = 4
	for dies := range steps + 1 {
		for _, how := range []fault{none, before, after} {
			t.Run(fmt.Sprintf("record %d, fault %d", dies, how), func(t *testing.T) {
				run := s.run()
				way := &frail{Sink: s.journal(t, run)}
				if dies == 0 {
					way.next = how
				}
				first, err := runjournal.Take(t.Context(), s.journal(t, run), way, taking(1))
				for i := 1; i < dies && err == nil; i++ {
					_, err = first.Append(t.Context(), map[string]int{"step": i})
				}
				if dies > 0 {
					way.next = how
					_, err = first.Append(t.Context(), map[string]int{"step": dies})
				}
				if how != none != errors.Is(err, messages.JournalStalled) {
					t.Fatalf("it died of %v", err)
				}
				way.next = none
				begun := dies > 0 || how != before
				next := taking(2)
				if !begun {
					next.Mode = runjournal.New
				}
				second, err := runjournal.Take(t.Context(), s.journal(t, run), s.journal(t, run), next)
				if err != nil {
					t.Fatal(err)
				}
				if first != nil {
					want := messages.JournalSuperseded
					if how != none && dies > 0 {
						want = messages.JournalStalled
					}
					for range 2 {
						if _, err := first.Append(t.Context(), struct{}{}); !errors.Is(err, want) {
							t.Errorf("the dead driver appends: %v", err)
						}
					}
				}
				if _, err := second.Append(t.Context(), map[string]bool{"on": true}); err != nil {
					t.Fatal(err)
				}
				whole, err := runjournal.Replay(t.Context(), s.journal(t, run), run, 0)
				if err != nil {
					t.Fatal(err)
				}
				want := ""
				if begun {
					want = "@1 "
				}
				for i := 1; i <= dies; i++ {
					if i < dies || how != before {
						want += fmt.Sprintf(`{"step":%d} `, i)
					}
				}
				if got := entries(whole); got != want+`@2 {"on":true}` {
					t.Errorf("the journal holds %s", got)
				}
			})
		}
	}
}

// machine is a run with all drivers it ever had.
type machine struct {
	s       *stage
	run     string
	drivers []*driver
	acked   []string // in the order of the stream
	token   uint64
}

type driver struct {
	way     *frail
	journal *runjournal.Journal
	over    bool // it was followed, or stalled
}

func (m *machine) current() *driver {
	if len(m.drivers) == 0 {
		return nil
	}
	return m.drivers[len(m.drivers)-1]
}

// take is another driver, behind whose replays the former one may still append.
func (m *machine) take(t *rapid.T) {
	m.token++
	d := &driver{way: &frail{Sink: m.s.journal(t, m.run), next: rapid.SampledFrom([]fault{none, none, before, after}).Draw(t, "fault")}}
	late := rapid.IntRange(0, 2).Draw(t, "late")
	from := meddling{m.s.journal(t, m.run), func() {
		if old := m.current(); late > 0 && old != nil && !old.over {
			late--
			m.append(t, old)
		}
	}}
	before, err := runjournal.Replay(t.Context(), m.s.journal(t, m.run), m.run, 0)
	if err != nil {
		t.Fatal(err)
	}
	how := taking(m.token)
	how.Mode = runjournal.Existing
	if len(before.Records) == 0 {
		how.Mode = runjournal.New
	}
	d.journal, err = runjournal.Take(t.Context(), from, d.way, how)
	switch {
	case d.way.next == none && err != nil, d.way.next != none && !errors.Is(err, messages.JournalStalled):
		t.Fatalf("take with fault %d: %v", d.way.next, err)
	case err != nil:
		if d.way.next == after { // it is there, so it counts
			for _, old := range m.drivers {
				old.over = true
			}
		}
		return
	}
	for _, old := range m.drivers {
		old.over = true
	}
	m.drivers = append(m.drivers, d)
}

func (m *machine) append(t *rapid.T, d *driver) {
	text := fmt.Sprintf("%d", len(m.acked))
	r, err := d.journal.Append(t.Context(), map[string]string{"is": text})
	switch {
	case d.over && err == nil:
		t.Fatal("a driver that is over appends")
	case !d.over && err != nil:
		t.Fatalf("append: %v", err)
	case err == nil:
		m.acked = append(m.acked, string(r.Entry))
	}
}

func TestWhoeverDrivesIsTheOnlyOne(t *testing.T) {
	s := newStage(t)
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{s: s, run: s.run()}
		t.Repeat(map[string]func(*rapid.T){
			"take": m.take,
			"append": func(t *rapid.T) {
				if len(m.drivers) == 0 {
					t.Skip()
				}
				m.append(t, rapid.SampledFrom(m.drivers).Draw(t, "driver"))
			},
			"die":  m.die,
			"read": m.read,
		})
		m.read(t)
	})
}

// die loses what the driver hears of its append.
func (m *machine) die(t *rapid.T) {
	d := m.current()
	if d == nil || d.over {
		t.Skip()
	}
	d.way.next = rapid.SampledFrom([]fault{before, after}).Draw(t, "fault")
	text := fmt.Sprint(len(m.acked))
	if _, err := d.journal.Append(t.Context(), map[string]string{"is": text}); !errors.Is(err, messages.JournalStalled) {
		t.Fatalf("the acknowledgement is lost: %v", err)
	}
	if d.way.next == after {
		m.acked = append(m.acked, `{"is":"`+text+`"}`)
	}
	d.over = true
}

// read compares what the journal holds with what its drivers were told.
func (m *machine) read(t *rapid.T) {
	whole, err := runjournal.Replay(t.Context(), m.s.journal(t, m.run), m.run, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range whole.Records {
		if r.Kind == runjournal.Step {
			got = append(got, string(r.Entry))
		}
	}
	if !slices.Equal(got, m.acked) {
		t.Fatalf("the journal holds %v, and was told %v", got, m.acked)
	}
}
