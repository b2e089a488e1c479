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
	"testing/synctest"
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

// operation is a row that a holder writes.
type operation struct {
	Claim string `json:"claim"` // of the holder who wrote it last
	Done  bool   `json:"done"`
	W     string `json:"w"` // tells one write from another
}

const headKey = "head.u.p"

// model follows the ledger batch by batch, and complains of what must never be.
type model struct {
	current messages.Claim
	ops     map[string]operation // by name
	claims  map[string]uint64    // revision of each claim that ever landed, by id
	landed  map[string]int       // batches of holders, by the witness in what is owed
	// moments are the states after each batch.
	moments []moment

	mu         sync.Mutex
	complaints []string
}

// moment is the ledger at one time, as far as a holder may ask about it.
type moment struct {
	held string // the claim that is held, if any
	owed []string
}

func newModel() *model {
	return &model{ops: map[string]operation{}, claims: map[string]uint64{}, landed: map[string]int{}, moments: []moment{{}}}
}

func (m *model) complain(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.complaints = append(m.complaints, fmt.Sprintf(format, args...))
}

// see takes in a batch that has landed.
func (m *model) see(b ledger.Batch, last uint64) {
	owed, fenced := m.owed(), false
	for i, w := range b.Writes {
		family, name, _ := strings.Cut(w.Key, ".")
		switch family {
		case ledger.PlaneKey:
			m.seeClaim(w, last-uint64(len(b.Writes)-1-i))
		case ledger.OwedKey:
			fenced = true
			found, err := ledger.DecodeOwed(ledger.Row{Key: ledger.OwedKey, Value: w.Value})
			if err != nil {
				m.complain("what is owed cannot be read: %v", err)
			}
			owed = found.Ops
			m.landed[string(w.Value)]++
		case "op":
			var op operation
			if err := json.Unmarshal(w.Value, &op); err != nil {
				m.complain("operation %s: %v", name, err)
			}
			m.ops[name] = op
			if op.Claim != m.current.ID || m.current.State != messages.ClaimHeld {
				m.complain("claim %s wrote while %s (%s) had the plane", op.Claim, m.current.ID, m.current.State)
			}
		}
	}
	if fenced && !slices.Equal(owed, m.owed()) {
		m.complain("owed are %s, and begun and not done are %s", owed, m.owed())
	}
	now := moment{owed: m.owed()}
	if m.current.State == messages.ClaimHeld {
		now.held = m.current.ID
	}
	m.moments = append(m.moments, now)
}

func (m *model) seeClaim(w ledger.Write, revision uint64) {
	next, err := ledger.DecodeClaim(ledger.Row{Key: ledger.PlaneKey, Value: w.Value})
	switch {
	case err != nil:
		m.complain("the claim cannot be read: %v", err)
	case next.State == messages.ClaimHeld && next.Generation != m.current.Generation+1:
		m.complain("generation %d follows %d", next.Generation, m.current.Generation)
	case next.State == messages.ClaimFree && (next.ID != m.current.ID || m.current.State != messages.ClaimHeld):
		m.complain("claim %s was released by %s", m.current.ID, next.ID)
	}
	if next.State == messages.ClaimHeld {
		m.claims[next.ID] = revision
	}
	m.current = next
}

// owed is what is begun and not done, sorted.
func (m *model) owed() []string {
	var names []string
	for name, op := range m.ops {
		if !op.Done {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ever reports whether some moment since one of before was so.
func (m *model) ever(since int, so func(moment) bool) bool {
	return slices.ContainsFunc(m.moments[since:], so)
}

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

// How long the director makes trouble, and how many processes there may be.
const (
	troubledTurns = 150
	mostProcesses = 6
)

// play plays one history and returns what is to be complained of.
func play(t *testing.T, seed uint64) (h *history) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel()
		h = &history{model: m, seed: seed, rng: rand.New(rand.NewPCG(seed, 1))}
		h.network = newNetwork(func(b ledger.Batch, last uint64) {
			for _, w := range b.Writes {
				if w.Key != ledger.OwedKey && w.Key != headKey && w.Key != ledger.PlaneKey {
					m.landed[w.Key+string(w.Value)]++
				}
			}
			m.see(b, last)
		})
		for range 2 + h.rng.IntN(2) {
			h.spawn()
		}
		h.direct()
		for len(h.wire) > 0 {
			h.deliver(0)
		}
		h.judge()
	})
	return h
}

// direct lets the calls through, and makes trouble for a while.
func (h *history) direct() {
	done := make(chan struct{})
	go func() { h.live.Wait(); close(done) }()
	for turn := 0; ; turn++ {
		synctest.Wait()
		select {
		case <-done:
			return
		default:
		}
		if turn < troubledTurns && h.trouble(turn) {
			continue
		}
		if !h.admit(turn) {
			time.Sleep(time.Millisecond) // they pause; in the bubble this takes no time
		}
	}
}

// trouble makes some, or not.
func (h *history) trouble(turn int) bool {
	p := h.procs[h.rng.IntN(len(h.procs))]
	switch chance := h.rng.IntN(100); {
	case chance < 10 && len(h.wire) > 0:
		h.deliver(h.rng.IntN(len(h.wire)))
	case chance < 13 && p.cancel != nil:
		p.cancel()
	case chance < 15 && len(h.procs) < mostProcesses && !p.isDead():
		p.kill()
		if p.cancel != nil {
			p.cancel()
		}
		h.spawn()
	case chance < 20:
		p.paused = turn + h.rng.IntN(60)
	case chance < 22:
		past := h.past[headKey]
		head := ledger.Row{Key: headKey}
		if len(past) > 0 {
			head = past[len(past)-1]
		}
		_, _ = h.land(ledger.Batch{Writes: []ledger.Write{ledger.Replace(head, []byte("moved"))}})
	default:
		return false
	}
	return true
}

// admit lets one call through of those who are not paused.
func (h *history) admit(turn int) bool {
	h.network.mu.Lock()
	var ready []*call
	for _, c := range h.waiting {
		if turn >= troubledTurns || h.procOf(c).paused <= turn {
			ready = append(ready, c)
		}
	}
	if len(ready) == 0 {
		h.network.mu.Unlock()
		return false
	}
	slices.SortStableFunc(ready, func(a, b *call) int { return h.procOf(a).number - h.procOf(b).number })
	c := ready[h.rng.IntN(len(ready))]
	h.waiting = slices.DeleteFunc(h.waiting, func(w *call) bool { return w == c })
	h.network.mu.Unlock()
	f := answered
	if turn < troubledTurns {
		f = h.draw(c.kind)
	}
	c.turn <- f
	return true
}

func (h *history) procOf(c *call) *process {
	for _, p := range h.procs {
		if p.link == c.link {
			return p
		}
	}
	panic("a call of nobody")
}

func (h *history) draw(kind string) fate {
	if kind == "send" {
		return []fate{answered, answered, answered, answered, answered, lost, unheard, late, late, contended, refusedForNow}[h.rng.IntN(11)]
	}
	return []fate{answered, answered, answered, answered, stale, stale, lost}[h.rng.IntN(7)]
}

// judge looks back once all is quiet.
func (h *history) judge() {
	for _, p := range h.procs {
		for _, key := range p.unlanded {
			if h.landed[key] > 0 {
				h.complain("%s landed although its writer was told that it did not", key)
			}
		}
		for i, id := range p.refused {
			if h.ever(p.refusedAt[i], func(m moment) bool { return m.held == id }) {
				h.complain("claim %s landed after it was refused", id)
			}
		}
	}
	for what, times := range h.landed {
		if times > 1 {
			h.complain("%s landed %d times", what, times)
		}
	}
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
