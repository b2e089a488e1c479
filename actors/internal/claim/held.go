package claim

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Held is the plane while this process has it. All methods are safe for concurrent
// use.
type Held struct {
	store    *ledger.Store
	run      *Run
	newID    func() string
	claim    messages.Claim
	revision uint64
	former   messages.Claim
	lane     *Lane

	// fenced is closed by the first fence; it carries no value: capacity 0.
	fenced chan struct{}
	// releasing is the turn of whoever releases: capacity 1, one token.
	releasing chan struct{}

	mu       sync.Mutex
	reason   error // why it is fenced
	release  bool  // a release has begun
	released bool  // and is done
}

func newHeld(config Config, won messages.Claim, revision uint64, former messages.Claim) *Held {
	h := &Held{store: config.Store, run: config.Run, newID: config.NewID, claim: won, revision: revision, former: former,
		fenced: make(chan struct{}), releasing: make(chan struct{}, 1)}
	h.lane = &Lane{held: h, turn: make(chan struct{}, 1)} // one batch at a time
	return h
}

// Claim is the row as this process wrote it.
func (h *Held) Claim() messages.Claim { return h.claim }

// Former is the claim that was written over; zero when there was none. Its
// connections, if any still live, are of no more use and may be kicked.
func (h *Held) Former() messages.Claim { return h.former }

// Pin is the condition that every write of a holder carries.
func (h *Held) Pin() ledger.Pin { return ledger.Pin{Key: ledger.PlaneKey, Revision: h.revision} }

// Lane is where the holder's barriers write.
func (h *Held) Lane() *Lane { return h.lane }

// Fenced is closed once this process may no longer act as the holder, other than by
// its own release. Reason then says why.
func (h *Held) Fenced() <-chan struct{} { return h.fenced }

// Reason is why it is fenced; nil while it is not.
func (h *Held) Reason() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reason
}

// Fence ends this process's use of the plane, for good and here only: the row
// stays as it is. The first reason stands.
func (h *Held) Fence(reason error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason == nil {
		h.reason = reason
		close(h.fenced)
	}
}

// usable refuses a holder who is fenced (messages.ClaimFenced) or gives the plane
// back (messages.ClaimReleased). It asks nobody.
func (h *Held) usable() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.reason != nil:
		return messages.ClaimFenced.From(h.reason)
	case h.release:
		return messages.ClaimReleased
	}
	return nil
}

// Guard makes sure that the plane is still this process's: the row has our claim,
// generation and both connections, under a proved leader. It fails with
// messages.ClaimFenced, ClaimReleased, and with ClaimLost when the row has moved,
// which fences. Without an answer it fails with messages.BrokerAway, and fences
// nothing.
func (h *Held) Guard(ctx context.Context) error {
	if err := h.usable(); err != nil {
		return err
	}
	if err := h.stands(ctx); err != nil {
		return fmt.Errorf("guard the plane: %w", err)
	}
	return h.usable()
}

// stands reads whether the row is as this process wrote it, whatever is known here.
// Another row fences.
func (h *Held) stands(ctx context.Context) error {
	if err := h.store.Sync(ctx); err != nil {
		return err
	}
	found, _, _, err := read(ctx, h.store)
	switch {
	case errors.Is(err, messages.ClaimCorrupt):
		return h.lose(err)
	case err != nil:
		return err
	case found == h.claim: // its time and host are ours as well
		return nil
	case found == h.given():
		return messages.ClaimReleased
	default:
		return h.lose(nil)
	}
}

// given is the row once this process gave the plane back.
func (h *Held) given() messages.Claim {
	given := h.claim
	given.State = messages.ClaimFree
	return given
}

// lose fences because the row has moved.
func (h *Held) lose(cause error) error {
	lost := error(messages.ClaimLost)
	if cause != nil {
		lost = messages.ClaimLost.From(cause)
	}
	h.Fence(lost)
	return lost
}
