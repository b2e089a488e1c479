package claim_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// watch sees every consumer that is made in CTRL, and on which connection it was
// asked for. The server tells of both.
type watch struct {
	testing.TB

	mu    sync.Mutex
	made  int            // consumers that came to be
	asked map[uint64]int // who asked for one, by client id
	heard chan struct{}  // capacity 1: something came since it was looked at last
	spoil []string       // what could not be read
}

func newWatch(t testing.TB, m *trust.Material, url string) *watch {
	w := &watch{TB: t, asked: map[uint64]int{}, heard: make(chan struct{}, 1)}
	nc := natsdtest.Connect(t, url, m, trust.CTRL, natsdtest.Everything())
	for subject, hear := range map[string]func([]byte){
		"$JS.EVENT.ADVISORY.CONSUMER.CREATED.>": func([]byte) { w.made++ },
		"$JS.EVENT.ADVISORY.API":                w.hearRequest,
	} {
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) { w.hear(hear, m.Data) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watch) hear(what func([]byte), data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what(data)
	select {
	case w.heard <- struct{}{}:
	default:
	}
}

// hearRequest takes one request to the API of JetStream.
func (w *watch) hearRequest(data []byte) {
	var request struct {
		Subject string `json:"subject"`
		Client  struct {
			ID uint64 `json:"id"`
		} `json:"client"`
	}
	if err := json.Unmarshal(data, &request); err != nil {
		w.spoil = append(w.spoil, err.Error())
		return
	}
	if strings.Contains(request.Subject, "CONSUMER.CREATE") || strings.Contains(request.Subject, "CONSUMER.DURABLE") {
		w.asked[request.Client.ID]++
	}
}

// totals are all consumers made so far, and all requests for one.
func (w *watch) totals() (made, asked int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.asked {
		asked += n
	}
	return w.made, asked
}

func (w *watch) askedBy(c messages.ConnectionTuple) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[c.ClientID]
}

// await waits until so many were made and asked for, and fails when there are more.
func (w *watch) await(n int) error {
	late := time.After(longEnough)
	for {
		made, asked := w.totals()
		switch {
		case made > n || asked > n:
			return fmt.Errorf("%d consumers were made and %d asked for, not %d", made, asked, n)
		case made == n && asked == n:
			return nil
		}
		select {
		case <-w.heard:
		case <-late:
			return fmt.Errorf("only %d consumers were made and %d asked for, of %d", made, asked, n)
		}
	}
}
