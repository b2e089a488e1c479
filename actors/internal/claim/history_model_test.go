package claim_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

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
