package stream_test

import (
	"errors"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
)

func TestTheRecordsAreAStreamOfTheirOwn(t *testing.T) {
	conn := dial(t, startServer(t).ClientURL())
	authority := config("s", 1)
	records := authority.Records()
	if authority.Name() != "KV_cotal_authority_s" || records.Name() != "KV_cotal_records_s" || records.Subject("a.b") != "$KV.cotal_records_s.a.b" {
		t.Fatalf("they are called %s and %s", authority.Name(), records.Name())
	}
	if records.Changed("a") == authority.Changed("a") {
		t.Error("a nudge does not tell the streams apart")
	}
	met := open(t, conn, authority)
	// The installation of the space stands in both.
	kept, err := stream.Open(t.Context(), conn, records, stream.Installation{InstallID: met.InstallID})
	if err != nil || kept.InstallID != met.InstallID {
		t.Fatalf("opened %+v, %v", kept, err)
	}
	if err := stream.Prove(t.Context(), conn, records, kept); err != nil {
		t.Error(err)
	}
	s := stream.New(conn, records, stream.NewLanes(1))
	at, err := s.Milestone(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if row, found, err := s.Get(t.Context(), at.Key); err != nil || !found || row.Revision != at.Revision {
		t.Errorf("the milestone is %+v, %v, %v", row, found, err)
	}
	if keys, err := stream.New(conn, authority, stream.NewLanes(1)).List(t.Context(), ">"); err != nil || len(keys) > 0 {
		t.Errorf("it stands in the authority's stream: %v, %v", keys, err)
	}
	a := admin{t, conn}
	for name, change := range map[string]map[string]any{"history": {"max_msgs_per_subject": 5}, "republish": {"republish": nil}, "max_age": {"max_age": 1 << 40}} {
		altered := a.config(records)
		before := a.config(records)
		for field, value := range change {
			altered[field] = value
		}
		a.mustAPI("STREAM.UPDATE."+records.Name(), altered)
		if err := stream.Prove(t.Context(), conn, records, kept); !errors.Is(err, messages.StreamDrifted) {
			t.Errorf("%s: %v", name, err)
		}
		a.mustAPI("STREAM.UPDATE."+records.Name(), before)
	}
}
