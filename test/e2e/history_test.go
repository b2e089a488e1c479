package e2e_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/test/world"
)

// history is how many principals lived and ended before. What is promised is a hundred
// thousand, on a machine that does nothing else.
var history = flag.Int("history", 2000, "how many principals of the past the ledger holds")

// TestStartWithALongHistory has a space start on a ledger that is full of heads and of
// operations that are over: it reads neither.
func TestStartWithALongHistory(t *testing.T) {
	w := world.Open(t)
	awaitPlane(w)
	alice := w.Person("alice", "laptop", "demo.>")
	ended := retire(w, alice)
	w.Close()

	js, err := jetstream.New(owner(w), jetstream.WithPublishAsyncMaxPending(4096))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(w.Context(), "KV_cotal_authority_main")
	if err != nil {
		t.Fatal(err)
	}
	const rows = "$KV.cotal_authority_main."
	head, op := rows+"head."+alice.Grant.Owner+"."+alice.Grant.Actor, rows+"op."+ended.OpID
	for _, subject := range []string{head, op} {
		row, err := stream.GetLastMsgForSubject(w.Context(), subject)
		if err != nil {
			t.Fatal(err)
		}
		for i := range *history {
			actor, id, uid := fmt.Sprintf("past%d", i), fmt.Sprintf("r%031x", i), fmt.Sprintf("u%030d", i)
			past := strings.NewReplacer(`"`+alice.Grant.Actor+`"`, `"`+actor+`"`, ended.OpID, id, alice.Grant.UID, uid)
			key := strings.NewReplacer("."+alice.Grant.Actor, "."+actor, ended.OpID, id).Replace(subject)
			if _, err := js.PublishAsync(key, []byte(past.Replace(string(row.Data)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(4 * world.Patience):
		t.Fatal("the past could not be written")
	}
	if info, err := stream.Info(w.Context()); err != nil || info.State.Msgs < 2*uint64(*history) {
		t.Fatalf("the ledger holds %d rows, %v", info.State.Msgs, err)
	}
	began := time.Now()
	w.Start()
	awaitPlane(w)
	took := time.Since(began)
	t.Logf("ready after %s, with %d heads and as many operations", took, *history)
	if took > 5*time.Second && !raceDetector {
		t.Errorf("ready after %s", took)
	}
	w.Person("bob", "laptop", "demo.>").Connect()
	if got := retire(w, w.Person("carol", "laptop", "demo.>")); got.Outcome != "retired" {
		t.Errorf("after a long history: %+v", got)
	}
}
