package contract

import (
	"context"
	"slices"
	"strings"

	"github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// revokedAtOnce is the most credentials that one step revokes.
const revokedAtOnce = 200

// Holder is a process that holds the plane of a ledger. Whoever becomes one takes it
// from the former, whose connections count as gone.
type Holder struct {
	*ledger.Barrier
	Lane  ledger.Lane
	store *ledger.Store
}

// NewHolder takes the plane.
func NewHolder(ctx context.Context, store *ledger.Store, options ledger.Options) (*Holder, error) {
	tuple := func(letter string) messages.ConnectionTuple {
		return messages.ConnectionTuple{ServerName: "n", ServerID: "NAAA", ClientID: 1, User: "U" + strings.Repeat(letter, 55)}
	}
	held, err := claim.Acquire(ctx, claim.Config{Store: store, Oracle: allGone{}, Run: &claim.Run{},
		Ledger: tuple("A"), Records: tuple("B"), Host: "h"})
	if err != nil {
		return nil, err
	}
	return Over(ledger.NewBarrier(store, options), held.Lane(), store), nil
}

// Over is a holder that writes through lane, and reads from store.
func Over(barrier *ledger.Barrier, lane ledger.Lane, store *ledger.Store) *Holder {
	return &Holder{Barrier: barrier, Lane: lane, store: store}
}

// allGone says of every connection that it is gone.
type allGone struct{}

func (allGone) Liveness(context.Context, messages.ConnectionTuple) (messages.Verdict, string) {
	return messages.Gone, ""
}

// Begin lands the first step of an operation.
func (h *Holder) Begin(ctx context.Context, first func(context.Context) (messages.Operation, ledger.Step, error)) error {
	return h.land(ctx, func(ctx context.Context) (ledger.Step, error) {
		_, step, err := first(ctx)
		return step, err
	})
}

// Takeover begins a takeover, or goes on with it, and runs it to its end.
func (h *Holder) Takeover(ctx context.Context, ask messages.BeginTakeover) (messages.Operation, error) {
	if err := h.Begin(ctx, func(ctx context.Context) (messages.Operation, ledger.Step, error) { return h.BeginTakeover(ctx, ask) }); err != nil {
		return messages.Operation{}, err
	}
	return h.Run(ctx, ask.ID)
}

// Retire begins the retirement of an incarnation, or goes on with it, and runs it to
// its end.
func (h *Holder) Retire(ctx context.Context, uid string) (messages.Operation, error) {
	if err := h.Begin(ctx, func(ctx context.Context) (messages.Operation, ledger.Step, error) {
		return h.BeginRetirement(ctx, messages.AskRetirement{UID: uid})
	}); err != nil {
		return messages.Operation{}, err
	}
	return h.Run(ctx, ledger.OperationOf(uid))
}

// RetireAsked retires everything that anybody asks for.
func (h *Holder) RetireAsked(ctx context.Context) error {
	asked, err := ledger.Asked(ctx, h.store)
	for _, uid := range asked {
		if _, err := h.Retire(ctx, uid); err != nil {
			return err
		}
	}
	return err
}

// Run takes an operation to its end from wherever it is.
func (h *Holder) Run(ctx context.Context, id string) (messages.Operation, error) {
	for {
		op, err := h.Operation(ctx, id)
		if err != nil || op.Step == messages.StepDone || op.Step == messages.StepSuperseded {
			return op, err
		}
		if err := h.Next(ctx, op); err != nil {
			return op, err
		}
	}
}

// Next takes an operation one step on.
func (h *Holder) Next(ctx context.Context, op messages.Operation) error {
	to := messages.StepEvicted
	switch op.Step {
	case messages.StepBegun:
		rows, err := h.Rows(ctx, ledger.CredentialsOf(op.UID))
		if err != nil {
			return err
		}
		for some := range slices.Chunk(rows, revokedAtOnce) {
			if err := h.land(ctx, func(ctx context.Context) (ledger.Step, error) { return h.RevokeFamily(ctx, op, some) }); err != nil {
				return err
			}
		}
		op.Outcome.Revoked, to = len(rows), messages.StepRevoked
	case messages.StepRevoked:
		op.Outcome.Eviction, op.Outcome.Servers = messages.EvictionSwept, []string{"n"}
	case messages.StepEvicted:
		if op.Kind == messages.Takeover {
			return h.land(ctx, func(ctx context.Context) (ledger.Step, error) { return h.CommitTakeover(ctx, op) })
		}
		to = messages.StepDrained
	case messages.StepDrained:
		return h.land(ctx, func(ctx context.Context) (ledger.Step, error) {
			return h.CommitRetirement(ctx, op, map[string]uint64{"EVENTS": 7})
		})
	}
	return h.land(ctx, func(ctx context.Context) (ledger.Step, error) { return h.Advance(ctx, op, to) })
}

// RevokeHandle revokes a handle and everything derived from it.
func (h *Holder) RevokeHandle(ctx context.Context, handle ledger.Handle) error {
	if err := h.land(ctx, func(ctx context.Context) (ledger.Step, error) { return h.FreezeHandle(ctx, handle) }); err != nil {
		return err
	}
	rows, err := h.Rows(ctx, ledger.LineageOf(handle))
	if err != nil {
		return err
	}
	for some := range slices.Chunk(rows, revokedAtOnce) {
		if err := h.land(ctx, func(ctx context.Context) (ledger.Step, error) { return h.RevokeLineage(ctx, some) }); err != nil {
			return err
		}
	}
	return nil
}

// Rows reads all that match, as a scanner would.
func (h *Holder) Rows(ctx context.Context, filter string) ([]ledger.Row, error) {
	if err := h.store.Sync(ctx); err != nil {
		return nil, err
	}
	keys, err := h.store.List(ctx, filter)
	if err != nil {
		return nil, err
	}
	var rows []ledger.Row
	for _, key := range keys {
		row, _, err := h.store.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (h *Holder) land(ctx context.Context, step func(context.Context) (ledger.Step, error)) error {
	_, err := h.Land(ctx, h.Lane, step)
	return err
}
