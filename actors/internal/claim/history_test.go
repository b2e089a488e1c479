package claim_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

var (
	histories = flag.Int("claim.histories", defaultHistories, "how many histories of claims to play")
	firstSeed = flag.Uint64("claim.seed", 1, "the seed of the first history; one alone is played with -claim.histories=1")
)

// steady pauses without chance, so that a history can be played again.
var steady = ledger.Patience{First: 1, Most: 1, Budget: 5 * time.Millisecond}

// history is one play: processes, and a director who lets their calls through.
type history struct {
	*network
	*model
	seed  uint64
	rng   *rand.Rand
	procs []*process
	live  sync.WaitGroup
}

// process is one that wants the plane. What it counts is its own: processes that
// wake up from a pause run at the same time.
type process struct {
	*history
	*link
	claim.Run
	rng    *rand.Rand
	number int
	ids    int
	cancel context.CancelFunc // of the call it makes now
	paused int                // until that turn of the director

	// unlanded are writes of which it was told that they did not land, refused the
	// claims of which it was told so, with the moments of that.
	unlanded     []string
	refused      []string
	refusedAt    []int
	wins, writes int
}

func (p *process) newID() string {
	p.ids++
	return fmt.Sprintf("%013d%013d", p.ids, p.number)
}

// Liveness answers what it likes: that stale holders are harmless must not hang on it.
func (p *process) Liveness(_ context.Context, c messages.ConnectionTuple) (messages.Verdict, string) {
	rng := rand.New(rand.NewPCG(p.seed+c.ClientID, uint64(len(p.moments)+p.ids<<20)))
	return []messages.Verdict{messages.Gone, messages.Gone, messages.Gone, messages.Live, messages.Unknown, "nonsense"}[rng.IntN(6)], "so they say"
}

func connection(n int) messages.ConnectionTuple {
	user := "U" + strings.Repeat("A", 53) + string([]byte{'A' + byte(n/26), 'A' + byte(n%26)})
	return messages.ConnectionTuple{ServerName: "n1", ServerID: "NSERVER", ClientID: uint64(n), User: user}
}

func (h *history) spawn() {
	p := &process{history: h, link: &link{network: h.network}, rng: rand.New(rand.NewPCG(h.rng.Uint64(), 7)), number: len(h.procs)}
	h.procs = append(h.procs, p)
	h.live.Go(p.run)
}

// run claims and writes, and goes through its life until it is dead or done.
func (p *process) run() {
	for range 3 {
		held := p.acquire()
		if held == nil {
			if p.isDead() {
				return
			}
			continue
		}
		for range p.rng.IntN(5) {
			p.act(held)
		}
		if p.rng.IntN(2) == 0 {
			p.giveBack(held)
		}
	}
}

// during makes one call that the director may have given up.
func (p *process) during(do func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.cancel = cancel
	if p.isDead() {
		cancel()
	}
	do(ctx)
	p.cancel = nil
}

func (p *process) store() *ledger.Store { return ledger.NewStore(p.link, steady) }

func (p *process) acquire() (held *claim.Held) {
	id := ""
	first := func() string { // the first one names the claim
		if id == "" {
			id = p.newID()
			return id
		}
		return p.newID()
	}
	p.during(func(ctx context.Context) {
		var err error
		held, err = claim.Acquire(ctx, claim.Config{Store: p.store(), Oracle: p, Run: &p.Run, Host: "h", NewID: first,
			Ledger: connection(2*p.number + 1), Records: connection(2*p.number + 2), Now: func() time.Time { return time.UnixMilli(1) }})
		switch {
		case err == nil:
			p.wins++
			if p.claims[id] == 0 || held.Pin().Revision != p.claims[id] {
				p.complain("process %d won with revision %d, and %s stands at %d", p.number, held.Pin().Revision, id, p.claims[id])
			}
		case errors.Is(err, messages.OutcomeUnknown), errors.Is(err, errDead): // it may land
		case errors.Is(err, messages.ClaimLivePeer), errors.Is(err, messages.ClaimUnknown), errors.Is(err, messages.ClaimConcurrent),
			errors.Is(err, messages.Contended), errors.Is(err, messages.BrokerAway):
			p.refused = append(p.refused, id)
			if p.current.ID == id && p.current.State == messages.ClaimHeld {
				p.complain("process %d has the plane and was told %v", p.number, err)
			}
			p.refusedAt = append(p.refusedAt, len(p.moments))
		default:
			p.complain("acquire: %v", err)
		}
	})
	return held
}

// act does one thing that a holder does, whether or not it still is one.
func (p *process) act(held *claim.Held) {
	since := len(p.moments) - 1
	mine := func(m moment) bool { return m.held == held.Claim().ID }
	switch p.rng.IntN(5) {
	case 0:
		p.during(func(ctx context.Context) {
			if held.Guard(ctx) == nil && !p.ever(since, mine) {
				p.complain("the guard of process %d found what was not so", p.number)
			}
		})
	case 1:
		p.during(func(ctx context.Context) {
			owed, err := held.Lane().Owed(ctx)
			if err == nil && !p.ever(0, func(m moment) bool { return mine(m) && slices.Equal(m.owed, owed.Ops) }) {
				p.complain("process %d found owed %s, which never was so while it had the plane", p.number, owed.Ops)
			}
		})
	case 2:
		p.finish(held)
	default:
		p.begin(held)
	}
}

// begin begins an operation, which also moves a row that others move.
func (p *process) begin(held *claim.Held) {
	p.during(func(ctx context.Context) {
		head, _, err := p.store().Get(ctx, headKey)
		if err != nil {
			return
		}
		head.Key = headKey
		name := p.newID()
		p.write(ctx, held, claim.Step{Begin: []string{name}, Writes: []ledger.Write{
			ledger.Create("op."+name, row(operation{Claim: held.Claim().ID, W: p.newID()})), ledger.Replace(head, []byte(name))}})
	})
}

// finish ends an operation that is owed, whoever began it.
func (p *process) finish(held *claim.Held) {
	p.during(func(ctx context.Context) {
		owed, err := held.Lane().Owed(ctx)
		if err != nil || len(owed.Ops) == 0 {
			return
		}
		name := owed.Ops[p.rng.IntN(len(owed.Ops))]
		before, found, err := p.store().Get(ctx, "op."+name)
		if err != nil || !found {
			return
		}
		p.write(ctx, held, claim.Step{Done: []string{name}, Writes: []ledger.Write{
			ledger.Replace(before, row(operation{Claim: held.Claim().ID, Done: true, W: p.newID()}))}})
	})
}

func (p *process) write(ctx context.Context, held *claim.Held, step claim.Step) {
	before := len(p.landed)
	_, err := held.Lane().Write(ctx, step)
	key := step.Writes[0].Key + string(step.Writes[0].Value)
	switch {
	case err == nil:
		p.writes++
		name := strings.TrimPrefix(step.Writes[0].Key, "op.")
		if op, found := p.ops[name]; !found || (len(step.Done) > 0 && !op.Done) || len(p.landed) == before && !p.isDead() {
			p.complain("process %d was told that %s has landed", p.number, name)
		}
	case errors.Is(err, messages.OutcomeUnknown), errors.Is(err, errDead), errors.Is(err, messages.ClaimLost),
		errors.Is(err, messages.ClaimFenced), errors.Is(err, messages.ClaimReleased): // it may have landed, while it could
	case errors.Is(err, ledger.ErrLost), errors.Is(err, messages.Contended), errors.Is(err, messages.BrokerAway):
		p.unlanded = append(p.unlanded, key)
	default:
		p.complain("write: %v", err)
	}
}

func (p *process) giveBack(held *claim.Held) {
	for range 3 {
		again := false
		p.during(func(ctx context.Context) {
			err := held.Release(ctx)
			switch {
			case err == nil:
				if p.current.ID == held.Claim().ID && p.current.State == messages.ClaimHeld {
					p.complain("process %d was told that its claim is released", p.number)
				}
			case errors.Is(err, messages.ReleaseUnreachable):
				again = true
			case errors.Is(err, messages.ClaimLost):
				if p.current.ID == held.Claim().ID {
					p.complain("process %d was told that its claim is lost", p.number)
				}
			default:
				p.complain("release: %v", err)
			}
			if held.Guard(ctx) == nil {
				p.complain("a guard passes after a release")
			}
		})
		if !again || p.isDead() {
			return
		}
	}
}

func row(op operation) []byte {
	value, _ := json.Marshal(op) // a plain struct
	return value
}

// TestHistories plays claims, pauses, crashes, lost and late answers, takeovers and
// fenced writes of several processes.
func TestHistories(t *testing.T) {
	const shards = 2
	for shard := range uint64(shards) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			each := (uint64(*histories) + shards - 1 - shard) / shards
			playAll(t, *firstSeed+shard, each, shards)
		})
	}
}

// playAll plays n histories, and makes sure that something happened in them.
func playAll(t *testing.T, seed, n, step uint64) {
	wins, writes, claims := 0, 0, 0
	for range n {
		h := play(t, seed)
		claims += len(h.claims)
		for _, p := range h.procs {
			wins, writes = wins+p.wins, writes+p.writes
		}
		if len(h.complaints) > 0 {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(h.complaints, "\n"))
		}
		seed += step
	}
	t.Logf("%d histories: %d claims landed, %d won knowingly, %d fenced writes", n, claims, wins, writes)
	if n > 100 && (wins < int(n) || writes < int(n)/2 || claims <= wins) {
		t.Error("too little happened")
	}
}
