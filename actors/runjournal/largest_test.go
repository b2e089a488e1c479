package runjournal_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/messages"
)

// A record as large as any may be is taken, replayed and delivered; one byte more fails
// alone.
func TestTheLargestRecord(t *testing.T) {
	s := newStage(t)
	run := s.run()
	j, err := runjournal.Take(t.Context(), s.journal(t, run), s.journal(t, run), taking(1))
	if err != nil {
		t.Fatal(err)
	}
	r, err := j.Append(t.Context(), map[string]string{"a": ""})
	if err != nil {
		t.Fatal(err)
	}
	small, err := runjournal.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	room := runjournal.MaxRecord - len(small)
	if _, err := j.Append(t.Context(), map[string]string{"a": strings.Repeat("x", room+1)}); !errors.Is(err, messages.Malformed) {
		t.Errorf("one byte more: %v", err)
	}
	if _, err := j.Append(t.Context(), map[string]string{"a": strings.Repeat("x", room)}); err != nil {
		t.Errorf("the largest: %v", err)
	}
	if _, err := j.Append(t.Context(), struct{}{}); err != nil {
		t.Errorf("after it: %v", err)
	}
	next, err := runjournal.Take(t.Context(), s.journal(t, run), s.journal(t, run), taking(2))
	if err != nil {
		t.Fatal(err)
	}
	if h := next.History(); len(h.Records) != 5 || len(h.Records[2].Entry) != room+len(`{"a":""}`) {
		t.Errorf("it replayed %d records", len(h.Records))
	}
}
