package claim_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
)

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
