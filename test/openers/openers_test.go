package openers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/test/world"
)

const openers = 10

// refusals are how serve ends when another process has the plane, or when the servers
// do not say in time whether it still has: that is no proof of its end.
var refusals = map[int][]string{
	3: {`"reason":"claim.live-peer"`, `"reason":"claim.concurrent"`},
	4: {`"reason":"claim.unknown"`},
}

// claim is the row that says who holds the plane.
type claim struct {
	Generation uint64
	State      string
	Host       string
	Ledger     struct{ CID uint64 }
	Records    struct{ CID uint64 }
}

// ground is a broker with an installation, seen by the owner of its account.
type ground struct {
	*testing.T
	dir, config string
	js          jetstream.JetStream

	mu    sync.Mutex
	asked map[uint64]int // who asked for a consumer, by client id
	heard chan struct{}  // capacity 1: something came since it was looked at last
}

func newGround(t *testing.T) *ground {
	w := world.New(t)
	g := &ground{T: t, dir: w.Dir, config: filepath.Join(w.Dir, "race.yaml"), asked: map[uint64]int{}, heard: make(chan struct{}, 1)}
	body := fmt.Sprintf("space: main\nnats_url: %s\nstate_dir: unused\nsecrets_dir: %s\nsentinel_creds: %s\n",
		w.Config.NATSURL, w.Config.SecretsDir, w.Config.SentinelCreds)
	if err := os.WriteFile(g.config, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	owner := w.Owner("ctrl")
	if _, err := owner.Subscribe("$JS.EVENT.ADVISORY.API", g.hear); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.js, err = jetstream.New(owner); err != nil {
		t.Fatal(err)
	}
	return g
}

// hear takes one request to the API of JetStream, of which the server tells.
func (g *ground) hear(m *nats.Msg) {
	var request struct {
		Subject string
		Client  struct{ ID uint64 }
	}
	if err := json.Unmarshal(m.Data, &request); err != nil {
		g.Error(err)
		return
	}
	if strings.Contains(request.Subject, "CONSUMER.CREATE") || strings.Contains(request.Subject, "CONSUMER.DURABLE") {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.asked[request.Client.ID]++
		select {
		case g.heard <- struct{}{}:
		default:
		}
	}
}

// taken are all requests for a consumer since it was asked last.
func (g *ground) taken() map[uint64]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := g.asked
	g.asked = map[uint64]int{}
	select {
	case <-g.heard:
	default:
	}
	return taken
}

func (g *ground) stream() jetstream.Stream {
	g.Helper()
	s, err := g.js.Stream(g.Context(), "KV_cotal_authority_main")
	if err != nil {
		g.Fatal(err)
	}
	return s
}

func (g *ground) claim() claim {
	g.Helper()
	m, err := g.stream().GetLastMsgForSubject(g.Context(), "$KV.cotal_authority_main.plane")
	if err != nil {
		g.Fatal(err)
	}
	var c claim
	if err := json.Unmarshal(m.Data, &c); err != nil {
		g.Fatal(err)
	}
	return c
}

// TestTenProcesses has ten processes open one space at the same moment, none of which
// may stand by: each time exactly one becomes ready and holds the plane, the nine
// others end and say that another process has it, and only the holder's scanners, if
// anybody's, had a consumer made. By turns the holder closes, and is killed.
func TestTenProcesses(t *testing.T) {
	g := newGround(t)
	for round := range *rounds {
		holder := g.race(round)
		if round%2 == 0 {
			holder.end(syscall.SIGTERM)
			if held := g.claim(); held.State != "released" {
				t.Errorf("round %d: closed, and the claim is %+v", round, held)
			}
		} else {
			holder.end(syscall.SIGKILL)
		}
	}
	g.seesAnybody()
}

func (g *ground) race(round int) *process {
	g.Helper()
	var all []*process
	for i := range openers {
		all = append(all, start(g.T, g.config, filepath.Join(g.dir, fmt.Sprintf("state-%d", i))))
	}
	var holders []*process
	for _, p := range all {
		if p.settle() {
			holders = append(holders, p)
			continue
		}
		code := p.cmd.ProcessState.ExitCode()
		if !slices.ContainsFunc(refusals[code], func(reason string) bool { return strings.Contains(p.talk.String(), reason) }) {
			g.Errorf("round %d: one ends with %d:\n%s", round, code, p.talk)
		}
	}
	if len(holders) != 1 {
		g.Fatalf("round %d: %d hold the plane", round, len(holders))
	}
	held := g.claim()
	if held.State != "held" || held.Generation != uint64(round+1) {
		g.Errorf("round %d: the claim is %+v", round, held)
	}
	for id, n := range g.taken() {
		if id != held.Ledger.CID && id != held.Records.CID {
			g.Errorf("round %d: connection %d, which the claim %+v does not name, had %d consumers made", round, id, held, n)
		}
	}
	return holders[0]
}

// seesAnybody proves that a consumer would have been seen, with one.
func (g *ground) seesAnybody() {
	g.Helper()
	g.taken()
	if _, err := g.stream().CreateConsumer(g.Context(), jetstream.ConsumerConfig{}); err != nil {
		g.Fatal(err)
	}
	<-g.heard
	if len(g.taken()) != 1 {
		g.Error("a consumer was not seen")
	}
}
