package runjournal_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/runjournal"
)

// init has fewer checks made than is usual: each is some dozen writes to a disk. A flag
// says otherwise.
func init() { _ = flag.Set("rapid.checks", "40") }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a stream of journals on a server of its own.
type stage struct {
	nc *nats.Conn
	js jetstream.JetStream
	n  atomic.Uint64
}

func newStage(t *testing.T) *stage {
	t.Helper()
	space := natsdtest.NewSpace(t, "acme")
	s := &stage{nc: natsdtest.Connect(t, space.URL(), space.Material, trust.DATA, natsdtest.Everything())}
	var err error
	if s.js, err = jetstream.New(s.nc); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one finds it there
		if err := runjournal.OpenStream(t.Context(), s.js, "acme", 1); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run is a run that nobody has driven.
func (s *stage) run() string { return fmt.Sprintf("run-%032x", s.n.Add(1)) }

func (s *stage) journal(t fataler, run string) *runjournal.Stream {
	j, err := runjournal.Over(s.nc, "acme", run)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

type fataler interface{ Fatal(...any) }

// fault is what becomes of the next append.
type fault int

const (
	none   fault = iota
	before       // it never reaches the stream
	after        // it is written, and the acknowledgement is lost
)

var errLost = errors.New("lost on the way")

// frail is a driver's way to the stream.
type frail struct {
	runjournal.Sink
	next fault
}

func (f *frail) Append(ctx context.Context, data []byte, last uint64) (uint64, error) {
	switch next := f.next; next {
	case before:
		return 0, errLost
	case after:
		_, err := f.Sink.Append(ctx, data, last)
		return 0, errors.Join(errLost, err)
	default:
		return f.Sink.Append(ctx, data, last)
	}
}

// meddling is a source behind whose back somebody writes after each read.
type meddling struct {
	runjournal.Source
	then func()
}

func (m meddling) Read(ctx context.Context, after uint64) ([]runjournal.Stored, error) {
	all, err := m.Source.Read(ctx, after)
	m.then()
	return all, err
}

func lease(token uint64) runjournal.Lease {
	return runjournal.Lease{Holder: fmt.Sprintf("driver.%d", token), Token: token, Epoch: token}
}

func taking(token uint64) runjournal.Taking {
	mode := runjournal.Existing
	if token == 1 {
		mode = runjournal.New
	}
	return runjournal.Taking{Mode: mode, Lease: lease(token)}
}

func activation(run string, n, token, replayed uint64) []byte {
	return encoded(runjournal.Record{Kind: runjournal.Activation, Run: run, N: n, At: time.UnixMilli(1), Lease: lease(token), ReplayedTo: replayed})
}

func step(run string, n uint64, entry string) []byte {
	return encoded(runjournal.Record{Kind: runjournal.Step, Run: run, N: n, At: time.UnixMilli(1), Entry: json.RawMessage(entry)})
}

func encoded(r runjournal.Record) []byte {
	data, err := runjournal.Encode(r)
	if err != nil {
		panic(err)
	}
	return data
}

// entries are those of a history, and activations are told apart.
func entries(h *runjournal.History) string {
	var all []string
	for _, r := range h.Records {
		if r.Kind == runjournal.Activation {
			all = append(all, fmt.Sprintf("@%d", r.Lease.Token))
		} else {
			all = append(all, string(r.Entry))
		}
	}
	return strings.Join(all, " ")
}
